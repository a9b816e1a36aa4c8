"""What targets made of one specimen, held against each other."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.outputs import Outputs
from outvote.core.target import Outcome, Run, Target
from outvote.judge.compare import mismatch_of, only_width_differs
from outvote.judge.refusals import Answers, vote_on
from outvote.judge.rounding import NO_GAP, Gap, Rounding
from outvote.judge.vote import Vote


@dataclass(frozen=True)
class Observation:
    """One experiment: who gave what, and who stands alone."""

    outputs: Mapping[str, Outputs]
    failures: Mapping[str, Run]
    kind: str | None  # inconsistency, nan, shape, crash, hang; None: they agree
    gap: Gap  # of the pair that is least explained, mismatches aside
    rounding: Rounding
    vote: Vote

    @property
    def distance(self) -> float:
        return self.gap.distance

    @property
    def tolerance(self) -> float:
        """What rounding explains where the distance was measured."""
        return self.gap.limit

    @property
    def odd(self) -> tuple[str, ...]:
        """Those that stand against the majority; everyone where there is none."""
        return self.vote.outvoted or tuple(n for group in self.vote.groups for n in group)

    def symptom(self) -> tuple[Any, ...]:
        """What must stay the same while the specimen shrinks."""
        heads = sorted((name, error_head(run)) for name, run in self.failures.items())
        return (self.kind, self.vote.decided, sorted(self.vote.outvoted), heads)


def observed(
    given: Sequence[Array],
    outputs: Mapping[str, Outputs],
    failures: Mapping[str, Run],
    rounding: Rounding,
    targets: Mapping[str, Target],
    layer_kind: str | None,
) -> Observation:
    """Results and failures held against each other: groups, the vote, the kind."""
    gaps = rounding.gaps(outputs)
    if failures:  # beside a failure it does not matter how wide equal integers are
        gaps = {
            (a, b): NO_GAP if only_width_differs(outputs[a], outputs[b]) else gap
            for (a, b), gap in gaps.items()
        }
    agreements = [pair for pair, gap in gaps.items() if gap.explained]
    voted = vote_on(Answers(given, outputs, failures), agreements, targets, layer_kind)
    kind = _kind_among(outputs, failures, [p for p in gaps if p not in agreements], voted)
    comparable = [g for (a, b), g in gaps.items() if mismatch_of(outputs[a], outputs[b]) is None]
    known = [gap for gap in comparable if not math.isnan(gap.distance)]
    worst = max(known, key=lambda gap: gap.times, default=Gap(0.0, rounding.tolerance))
    return Observation(outputs, failures, kind, worst, rounding, voted)


def kind_of(a: Outputs, b: Outputs) -> str:
    """What kind of difference there is between two results that differ."""
    if mismatch_of(a, b) is not None:
        return "shape"
    pairs = zip(a.arrays, b.arrays, strict=True)
    if any((np.isnan(x) != np.isnan(y)).any() for x, y in pairs):
        return "nan"
    return "inconsistency"


def kind_of_failure(run: Run) -> str:
    return "hang" if run.outcome is Outcome.HANG else "crash"


_ORDER = ("shape", "nan", "inconsistency")  # what is told where pairs differ in several ways


def _kind_among(
    outputs: Mapping[str, Outputs],
    failures: Mapping[str, Run],
    apart: Collection[tuple[str, str]],
    voted: Vote,
) -> str | None:
    if len(voted.groups) < 2 or not outputs:
        return None  # where nobody gives a result there is nothing to hold against a failure
    odd = set(voted.outvoted) or {n for group in voted.groups for n in group}
    failed = [run for name, run in failures.items() if name in odd]
    if failed:
        return kind_of_failure(failed[0])
    if failures and voted.decided:
        return "shape"  # a result where the others refuse
    found = {kind_of(outputs[a], outputs[b]) for a, b in apart if {a, b} & odd}
    return next((kind for kind in _ORDER if kind in found), None)


def error_head(run: Run) -> str:
    """The kind of an error: its type and the beginning of its text, without numbers and names."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"|[\d\[\](),.\-]+", " ", run.message)
    return " ".join([run.outcome.value, run.error, *text.split()[:6]])
