"""Triage: is it a bug, a difference that is meant, or rounding? And whose?

The decision is a table: the first row that holds. docs/verdicts.md prints it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outvote.bench.bench import Bench
from outvote.core.specimen import Specimen
from outvote.judge.observation import Observation
from outvote.judge.rows import Row, first
from outvote.judge.tolerance import FARTHER, LAYER_PLACES, LOST_DIGITS
from outvote.triage.inquiry import Exact, Inquiry


@dataclass(frozen=True)
class Verdict:
    """bug, difference, precision or unknown; who is wrong; why we think so."""

    triage: str
    wrong: tuple[str, ...]
    reason: str
    exact: Exact | None = None
    errors: Mapping[str, float] | None = None  # distance of each target to the exact result
    row: str = ""  # of the table


def decide(bench: Bench, specimen: Specimen, seen: Observation) -> Verdict:
    """The verdict on what one specimen shows."""
    asked = Inquiry(bench, specimen, seen)
    row = first(ROWS, asked)
    wrong = tuple(dict.fromkeys(row.accused(asked)))
    exact = asked.reference if asked.failed else asked.exact
    errors = asked.errors if exact and _has_values(asked) else None
    return Verdict(row.triage, wrong, row.says(asked), exact, errors, row.name)


# Who is accused.


def _outvoted(asked: Inquiry) -> tuple[str, ...]:
    return asked.seen.vote.outvoted


def _failures(asked: Inquiry) -> tuple[str, ...]:
    return tuple(n for n in asked.seen.odd if n in asked.seen.failures)


def _misshapen(asked: Inquiry) -> tuple[str, ...]:
    return tuple(n for n, found in asked.shapes.items() if found != _right_shape(asked))


def _wrong(asked: Inquiry) -> tuple[str, ...]:
    return asked.wrong


# What rows ask, where it takes more than one question.


def _has_form(asked: Inquiry) -> bool:
    """Whether results differ in number, shape or type."""
    return asked.kind == "shape"


def _has_values(asked: Inquiry) -> bool:
    return asked.kind in ("nan", "inconsistency")


def _right_shape(asked: Inquiry) -> list[tuple[int, ...]] | None:
    return [a.shape for a in asked.exact.outputs.arrays] if asked.exact else None


def _results_are_right(asked: Inquiry) -> bool:
    reference, found = asked.reference, asked.seen.outputs
    return reference is not None and bool(found) and not asked.wrong


def _vanishes(asked: Inquiry) -> bool:
    return bool(asked.wrong) and set(asked.wrong) <= set(asked.right_in_float64)


def _is_last_places(asked: Inquiry) -> bool:
    """Of those who cannot be held to float64; the others must be right there."""
    excused = {n for n in asked.not_in_float64 if n in asked.last_places}
    return bool(excused) and set(asked.wrong) <= excused | set(asked.right_in_float64)


# Sentences. Each says what was done.


def _against(asked: Inquiry) -> str:
    """How far everybody is from the exact result, and how far rounding takes whom least."""
    if asked.exact is None:
        return asked.vote
    told = ", ".join(f"{n} {e:.2g}" for n, e in asked.errors.items())
    far = [asked.gaps[n] for n in asked.wrong] or list(asked.gaps.values())
    limit = min((gap.limit for gap in far), default=0.0)
    return f"Distance to {asked.exact.source}: {told}; rounding explains {limit:.2g}."


def _says_float64(asked: Inquiry) -> str:
    told = ", ".join(
        f"{n} (distance {asked.errors_in_float64[n]:.2g})"
        for n in asked.wrong
        if n in asked.right_in_float64
    )
    return f"In float64 it vanishes: asked there, the exact result comes from {told}."


def _says_last_places(asked: Inquiry) -> str:
    not_asked = [n for n in asked.not_in_float64 if n in asked.last_places]
    others = [_says_float64(asked)] if set(asked.wrong) - set(not_asked) else []
    told = (
        f"{_listed(not_asked)} did not compute it in float64; every element that is off is off by "
        f"no more than {LAYER_PLACES:g} last places of the largest number read, or of 1."
    )
    return " ".join([_against(asked), told, *others])


def _says_declared(asked: Inquiry) -> str:
    told = "; ".join(
        f"{name} computes {setting.what}in {setting.name} by its own setting"
        for name, setting in asked.declared.items()
    )
    return f"{_against(asked)} {told}, which explains it."


def _with_shape(asked: Inquiry) -> str:
    shape = _right_shape(asked)
    assert asked.exact is not None
    return f"{asked.vote} {asked.exact.source.capitalize()} gives {shape[0] if shape else '-'}."


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return " and ".join(names)


def _meant(asked: Inquiry) -> str:
    text = asked.meant.text if asked.meant else ""
    return f"{text} {_against(asked)}" if _has_values(asked) and asked.exact else text


ROWS: tuple[Row[Inquiry], ...] = (
    # Some fail.
    Row(
        "fails",
        "a target fails, and a majority of independent libraries speaks against it",
        lambda q: q.failed and q.seen.vote.decided,
        "bug",
        lambda q: q.vote,
        _failures,
        "who fails",
    ),
    Row(
        "fails-reference",
        "a target fails, and all others give what our own reference gives",
        lambda q: q.failed and _results_are_right(q),
        "bug",
        lambda q: (
            f"{q.vote} {q.reference.source.capitalize() if q.reference else ''} gives what "
            f"{_listed(list(q.seen.outputs))} gives."
        ),
        _failures,
        "who fails",
    ),
    Row(
        "fails-undecided",
        "a target fails, otherwise",
        lambda q: q.failed,
        "unknown",
        lambda q: q.vote,
    ),
    # Results of another number, shape or type.
    Row(
        "listed-form",
        "shapes or types differ as `differences.toml` lists it",
        lambda q: _has_form(q) and q.meant is not None,
        "difference",
        _meant,
        _outvoted,
        "the outvoted",
    ),
    Row(
        "refused",
        "some refuse what others compute, and a majority decides",
        lambda q: _has_form(q) and bool(q.seen.failures) and q.seen.vote.decided,
        "bug",
        lambda q: q.vote,
        _outvoted,
        "the outvoted",
    ),
    Row(
        "refused-undecided",
        "some refuse what others compute, otherwise",
        lambda q: _has_form(q) and bool(q.seen.failures),
        "unknown",
        lambda q: q.vote,
    ),
    Row(
        "declared-width",
        "equal integers in fewer bits, of targets that declare to have none of 64 bits",
        lambda q: _has_form(q) and q.only_width and bool(q.without_64_bits),
        "precision",
        lambda q: (
            f"Values and shapes are equal; {_listed(q.without_64_bits)} passes on narrower "
            "integers, having none of 64 bits by its own setting."
        ),
    ),
    Row(
        "width",
        "equal integers in more or fewer bits, otherwise",
        lambda q: _has_form(q) and q.only_width,
        "difference",
        lambda q: f"Values and shapes are equal, only the integer type differs; {q.vote}",
        _outvoted,
        "the outvoted",
    ),
    Row(
        "shape",
        "some have the shape of the exact result, and some do not",
        lambda q: _has_form(q) and q.exact is not None and 0 < len(_misshapen(q)) < len(q.shapes),
        "bug",
        _with_shape,
        _misshapen,
        "who has another shape",
    ),
    Row(
        "shape-of-none",
        "nobody has the shape of the exact result",
        lambda q: _has_form(q) and q.exact is not None and len(_misshapen(q)) == len(q.shapes),
        "unknown",
        _with_shape,
    ),
    Row(
        "form",
        "shapes or types differ, and a majority decides",
        lambda q: _has_form(q) and q.seen.vote.decided,
        "bug",
        lambda q: q.vote,
        _outvoted,
        "the outvoted",
    ),
    Row(
        "form-undecided",
        "shapes or types differ, otherwise",
        _has_form,
        "unknown",
        lambda q: q.vote,
    ),
    # Numbers. Whoever is farther from the exact result than rounding explains is wrong; without
    # an exact result, whoever is outvoted.
    Row(
        "rounding",
        "nobody is wrong: all are within rounding of the exact result",
        lambda q: q.exact is not None and not q.wrong,
        "precision",
        _against,
    ),
    Row(
        "range",
        "nobody is wrong on elements whose exact result fits into the type",
        lambda q: q.fits_nowhere_else,
        "precision",
        lambda q: (
            f"{_against(q)} Where they are farther, the exact result is beyond the largest "
            "number of the type: overflow."
        ),
    ),
    Row(
        "listed",
        "`differences.toml` lists it",
        lambda q: q.meant is not None,
        "difference",
        _meant,
        lambda q: q.seen.vote.outvoted if q.exact is None or q.all_wrong else q.wrong,
        "who is wrong, or outvoted where all are",
    ),
    Row(
        "undefined",
        "nobody is wrong on elements whose exact result is a number, and nothing read is NaN",
        lambda q: q.is_undefined,
        "difference",
        lambda q: (
            f"{_against(q)} Where they are farther there is no exact result: infinity minus "
            "infinity, or times 0."
        ),
    ),
    Row(
        "declared",
        "who is wrong declares coarser arithmetic (TF32, bf16, f16) that explains it",
        lambda q: bool(q.wrong) and len(q.declared) == len(q.wrong),
        "precision",
        _says_declared,
    ),
    Row(
        "float64",
        "who is wrong gives the exact result in float64 (one digit nearer at least), and is wrong "
        f"by less than {LOST_DIGITS:.3g} times what rounding explains, or by no more than "
        f"{LAYER_PLACES:g} last places of what the layer reads; where all are wrong, the outvoted "
        f"are no more than {FARTHER:g} times as far as the majority",
        _vanishes,
        "precision",
        lambda q: f"{_against(q)} {_says_float64(q)}",
    ),
    Row(
        "last-places",
        "who is wrong did not compute it in float64, and every element that is off is off by no "
        f"more than {LAYER_PLACES:g} last places of the largest number read, or of 1",
        _is_last_places,
        "precision",
        _says_last_places,
    ),
    Row(
        "equally-far",
        f"all are wrong, and none by more than {FARTHER:g} times the nearest",
        lambda q: q.exact is not None and q.all_wrong and q.is_equally_far,
        "precision",
        lambda q: f"{_against(q)} None is much nearer than the others.",
    ),
    Row(
        "none-right",
        "all are wrong, and a majority decides",
        lambda q: q.exact is not None and q.all_wrong and q.seen.vote.decided,
        "bug",
        lambda q: f"{q.vote} {_against(q)} None gives that.",
        _outvoted,
        "the outvoted",
    ),
    Row(
        "none-right-undecided",
        "all are wrong, otherwise",
        lambda q: q.exact is not None and q.all_wrong,
        "unknown",
        lambda q: f"{_against(q)} {q.vote}",
    ),
    Row(
        "no-farther",
        f"who is wrong is no more than {FARTHER:g} times as far from the exact result as another "
        "who is right",
        lambda q: q.exact is not None and q.is_no_farther,
        "precision",
        lambda q: f"{_against(q)} None is much farther than the others.",
    ),
    Row(
        "undecided",
        "there is no exact result, and no majority decides",
        lambda q: q.exact is None and not q.seen.vote.decided,
        "unknown",
        lambda q: f"{q.vote} No exact result could be had.",
    ),
    Row(
        "edge",
        "the layer does more than compare and move numbers, and moving the input by one last place "
        "takes a right target to the answer of the wrong, element by element",
        lambda q: q.is_on_an_edge,
        "precision",
        lambda q: (
            f"{_against(q)} A discontinuity: moving the input by one unit in the last place "
            f"makes {q.right[0]} give the answer of {_listed(q.wrong)}."
        ),
    ),
    Row(
        "majority-wrong",
        "who is wrong is of the majority",
        lambda q: bool(set(q.wrong) & set(q.seen.vote.majority)),
        "bug",
        lambda q: f"{_against(q)} Here the majority is wrong. {q.vote}",
        _wrong,
        "who is wrong",
    ),
    Row(
        "wrong",
        "otherwise, with an exact result",
        lambda q: q.exact is not None,
        "bug",
        lambda q: f"{_against(q)} {q.vote}",
        _wrong,
        "who is wrong",
    ),
    Row(
        "outvoted",
        "otherwise",
        lambda q: True,
        "bug",
        lambda q: f"{q.vote} No exact result could be had.",
        _outvoted,
        "the outvoted",
    ),
)
