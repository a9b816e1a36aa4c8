"""How targets part on a small graph, seen cheaply: who, in what way, and by which words."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from outvote.core.arrays import Array
from outvote.core.batch import GraphAnswer, GraphCase
from outvote.core.sifted import CauseKey
from outvote.core.target import Outcome
from outvote.judge.tolerance import BULK_PLACES, PLACE, SCREEN

_NAMES = re.compile(r"'[^']*'|\"[^\"]*\"|\([^()]*\)|\S*[\d_/\\]\S*")  # vary from case to case
_WORDS = re.compile(r"[A-Za-z]+")
_MOST_WORDS = 14
Answers = Mapping[str, GraphAnswer]


def is_parted(answers: Answers) -> bool:
    """Whether targets differ, or some fail where others do not. A gap says nothing."""
    ran = [answer for answer in answers.values() if answer.outcome is Outcome.OK]
    if not ran:
        return False
    if any(a.outcome not in (Outcome.OK, Outcome.UNSUPPORTED) for a in answers.values()):
        return True
    return any(_way(ran[0], other) for other in ran[1:])


def key_of(case: GraphCase, answers: Answers) -> CauseKey:
    """Who leaves the largest group of those that agree, how, where, and with which words."""
    groups = _groups(answers)
    failed = {n: a for n, a in answers.items() if _is_failure(a)}
    most = max(groups, key=len, default=[])
    leaving, places = [], []
    for group in groups:
        if group is not most:
            way, place = _way(answers[most[0]], answers[group[0]]) or ("", 0)
            leaving.append(f"{', '.join(group)}: {way}")
            places.append(place)
    leaving += [f"{name}: {answer.outcome.value}" for name, answer in failed.items()]
    kinds = [case.leaves[place] for place in places if place < len(case.leaves)]
    kind = kinds[0] if kinds else " ".join(case.leaves[:1] if len(case.leaves) == 1 else ())
    words = [wording(answer.message) for answer in failed.values()]
    return CauseKey(f"{kind or 'a graph'} | {'; '.join(leaving)}", " | ".join(
        [case.signature, *words] if case.signature or words else []))  # fmt: skip


def wording(message: str) -> str:
    """The words of an error without names and numbers; the innermost sentence comes last."""
    words = _WORDS.findall(_NAMES.sub(" ", message))
    return " ".join([*words[:_MOST_WORDS], *words[_MOST_WORDS:][-_MOST_WORDS:]])


def _is_failure(answer: GraphAnswer) -> bool:
    return answer.outcome not in (Outcome.OK, Outcome.UNSUPPORTED)


def _groups(answers: Answers) -> list[list[str]]:
    groups: list[list[str]] = []
    for name, answer in answers.items():
        if answer.outcome is not Outcome.OK:
            continue
        for group in groups:
            if not _way(answers[group[0]], answer):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


def _way(a: GraphAnswer, b: GraphAnswer) -> tuple[str, int] | None:
    """How outputs differ, and in which of them first; None where they do not."""
    if len(a.outputs) != len(b.outputs):
        return "number of outputs", 0
    for place, (x, y) in enumerate(zip(a.outputs, b.outputs, strict=True)):
        if a.type_of(place) != b.type_of(place):
            return "type", place
        if not alike(x, y, a.type_of(place)):
            return _how(x, y), place
    return None


def _how(x: Array, y: Array) -> str:
    if x.shape != y.shape:
        return "shape"
    if x.dtype.kind == "f" and not np.array_equal(np.isnan(x), np.isnan(y)):
        return "nan"
    if x.dtype.kind == "f" and not np.array_equal(np.isinf(x), np.isinf(y)):
        return "infinity"
    return "values"


def alike(a: Array, b: Array, dtype: str) -> bool:
    """Whether two tensors of a type agree so far that a closer look is not worth it."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind != "f":
        return False
    tolerance = max(SCREEN, BULK_PLACES * PLACE[dtype])
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(x)
        largest = float(np.max(size, initial=0.0, where=np.isfinite(size)))
        near = np.abs(x - y) <= tolerance * largest
    return bool(np.all(near | (x == y) | (np.isnan(x) & np.isnan(y))))
