"""The verdict on a stage of training: a table, as `verdict.py` has one for what layers give.

Finite differences decide on gradients, and a number beats NaN; a vote decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from outvote.core.outputs import Outputs
from outvote.core.source import one_line
from outvote.judge.rows import DecisionRow, Words, first, sentence
from outvote.judge.slopes import Point, Slope
from outvote.judge.tolerance import FARTHER, LOST_DIGITS
from outvote.triage.stage_inquiry import StageInquiry

_LETTERS = 200  # of a message


@dataclass(frozen=True)
class StageVerdict:
    """bug, difference, precision or unknown; who is wrong; why; what would be right."""

    triage: str
    wrong: tuple[str, ...]
    reason: str
    row: str
    expected: Outputs | None = None
    source: str = ""
    points: tuple[Point, ...] = ()


def decide_stage(asked: StageInquiry) -> StageVerdict:
    row = first(STAGE_ROWS, asked)
    wrong = tuple(dict.fromkeys(row.accused(asked)))
    reason = sentence(row, Words(asked, _WORDS))
    if asked.failed or asked.seen.kind == "shape" or asked.adds_up or asked.passed_on:
        return StageVerdict(row.triage, wrong, reason, row.name)
    right = asked.right_in_float64
    source = f"{_listed(right)} in float64" if right else ""
    points = tuple(asked.points)
    return StageVerdict(row.triage, wrong, reason, row.name, asked.expected, source, points)


def _slopes(asked: StageInquiry) -> str:
    """What central differences give where targets are farthest apart, and what these give."""
    odd = [point for point in asked.points if point.wrong] or asked.points
    point = odd[0]
    given = ", ".join(f"{name} {value:.6g}" for name, value in point.given.items())
    own = next(iter(point.wrong), "") if point.is_disputed else ""
    slope = point.slope_on(own) if own else point.slope
    return (
        f"Central differences in float64 on {own or point.by} give {_interval(slope)} for "
        f"{_place(point)}; the targets give {given}."
    )


def _place(point: Point) -> str:
    return f"{point.name}[{', '.join(map(str, point.index))}]"


def _interval(slope: Slope) -> str:
    if slope.is_kink:
        return f"{slope.low:.6g} on one side and {slope.high:.6g} on the other"
    return f"{slope.high:.6g}"


def _own(asked: StageInquiry) -> str:
    """Where functions are farthest apart: the slope of each."""
    point = asked.disputed[0]
    told = ", ".join(f"{name} {_interval(point.slope_on(name))}" for name in point.given)
    return f"Central differences of each in float64 for {_place(point)}: {told}."


def _against(asked: StageInquiry) -> str:
    told = ", ".join(f"{name} {gap.distance:.2g}" for name, gap in asked.gaps.items())
    limit = min((gap.limit for gap in asked.gaps.values()), default=0.0)
    agreed = _listed(asked.agreed)
    formula = ", as our own formula does" if asked.by_formula else ""
    return (
        f"Distance to what {agreed} give in float64{formula}: {told}; "
        f"rounding explains {limit:.2g}."
    )


def _lost(asked: StageInquiry) -> str:
    """Who failed in float64: with it, there might be an answer."""
    return "".join(
        f" In float64 {name} fails: {one_line(run.message)[:_LETTERS]}."
        for name, run in asked.lost.items()
    )


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(names)


_WORDS: Mapping[str, Callable[[StageInquiry], str]] = {
    "vote": lambda q: q.seen.vote.reason,
    "slopes": _slopes,
    "own": _own,
    "against": _against,
    "evidence": lambda q: _slopes(q) if q.points else _against(q),
    "wrong": lambda q: _listed(q.wrong),
    "misshapen": lambda q: _listed(q.misshapen or q.mistyped),
    "missing": lambda q: _listed(q.without_gradient),
    "readers": lambda q: _listed(q.readers),
    "lost": _lost,
}

STAGE_ROWS: tuple[DecisionRow[StageInquiry], ...] = (
    DecisionRow(
        "stage-fails",
        "a target fails, and a majority of independent libraries speaks against it, or what "
        "others give is agreed on in float64",
        lambda q: q.failed and (q.seen.vote.decided or bool(q.agreed)),
        "bug",
        "{vote}.",
        lambda q: q.failures,
        "who fails",
    ),
    DecisionRow(
        "stage-fails-undecided",
        "a target fails, otherwise",
        lambda q: q.failed,
        "unknown",
        "{vote}.",
    ),
    DecisionRow(
        "gradient-form",
        "a gradient has another shape or type than what it is a gradient of",
        lambda q: bool(q.misshapen or q.mistyped),
        "bug",
        "A gradient has the shape and the type of what it is a gradient of; {misshapen} gives "
        "another one.",
        lambda q: q.misshapen or q.mistyped,
        "who gives it",
    ),
    DecisionRow(
        "stage-types",
        "results differ in type alone, and are no gradients",
        lambda q: q.types_alone,
        "difference",
        "The numbers agree; their types differ. {vote}.",
    ),
    DecisionRow(
        "stage-form",
        "results differ in number, shape or type, otherwise",
        lambda q: q.seen.kind == "shape",
        "unknown",
        "{vote}.",
    ),
    DecisionRow(
        "gradient-at-infinity",
        "of a whole model, none of whose stages differs alone, and to some of whose layers NaN or "
        "infinity comes, forward or back",
        lambda q: q.at_infinity,
        "difference",
        "No stage alone differs, and NaN or infinity comes to some layer, forward or back: nothing "
        "has a derivative there, and no answer is wrong.",
    ),
    DecisionRow(
        "stage-adds-up",
        "of a whole model, none of whose stages differs alone, numbers are apart by less than "
        f"{LOST_DIGITS:.3g} times what rounding explains",
        lambda q: q.adds_up,
        "precision",
        "No stage alone differs: small differences of single layers add up.",
    ),
    DecisionRow(
        "stage-passed-on",
        "of a whole model, none of whose stages differs alone, each target's gradients are what "
        "those of its own layers come to",
        lambda q: q.part == "gradient" and q.passed_on,
        "precision",
        "No stage alone differs, and each target's gradients are what those of its own layers come "
        "to: rounding that earlier layers pass on moves numbers over kinks of later ones.",
    ),
    DecisionRow(
        "steps-lead-on",
        "targets part in the first step of a whole model, none of whose stages differs alone, and "
        "nobody goes where no gradients lead, as rounding moves them",
        lambda q: q.part == "steps" and q.passed_on,
        "precision",
        "No stage alone differs, and each target's first step is what updates make of gradients, "
        "as rounding moves them: what is nothing but rounding may become a whole step of an "
        "optimiser.",
    ),
    DecisionRow(
        "loss-of-logits",
        "targets agree once the model's output is passed on by one more layer: some compute the "
        "loss from the logits behind it, others from probabilities that they clip",
        lambda q: bool(q.readers),
        "difference",
        "{readers} computes the loss from the logits behind the last activation, the others from "
        "what it gives, clipped: saturated, these are not the same. With one more layer between "
        "that passes it on, targets agree.",
    ),
    DecisionRow(
        "loss-of-clips",
        "of a loss without conclusive central differences, each gives what it gives in float64, "
        "and what these are apart by shrinks with the number by which losses keep away from 0 and "
        "1",
        lambda q: q.clips,
        "difference",
        "Targets clip at other moments, such as before and after they normalise: what they are "
        "apart by in float64 shrinks with the number that they clip by.",
    ),
    DecisionRow(
        "gradient-missing",
        "a library gives no gradient where central differences are not zero",
        lambda q: bool(q.without_gradient),
        "bug",
        "{missing} gives no gradient, as if nothing depended on it. {slopes}",
        lambda q: q.without_gradient,
        "who gives none",
    ),
    DecisionRow(
        "gradient-overflows",
        "some are outside of what central differences and rounding allow only where these are "
        "beyond the range of the type",
        lambda q: q.overflows,
        "precision",
        "The derivative is beyond the range of the type: overflow. {slopes}",
    ),
    DecisionRow(
        "gradient-nan",
        "a gradient is NaN or infinite where central differences give a number",
        lambda q: bool(q.without_number),
        "bug",
        "A number beats NaN. {slopes}",
        lambda q: q.without_number,
        "who gives no number",
    ),
    DecisionRow(
        "gradient-kink",
        "one-sided derivatives differ, and every gradient lies between them",
        lambda q: q.has_kinks and not q.far,
        "difference",
        "A kink or a tie: every number between the one-sided derivatives is a right answer. "
        "{slopes}",
    ),
    DecisionRow(
        "gradient-own",
        "every gradient is the derivative of what its own library computes, and beside the point "
        "libraries compute different functions",
        lambda q: bool(q.disputed) and not q.far,
        "difference",
        "Each is the derivative of what its own library computes: beside the point these are "
        "different functions. {own}",
    ),
    DecisionRow(
        "gradient-rounding",
        "nobody is outside of what central differences and rounding allow",
        lambda q: bool(q.points) and not q.far,
        "precision",
        "{slopes} Rounding explains it.",
    ),
    DecisionRow(
        "stage-rounding",
        "no central differences are conclusive; all are within rounding of what independent "
        "libraries give in float64",
        lambda q: q.exact is not None and not q.far,
        "precision",
        "{against}",
    ),
    DecisionRow(
        "stage-float64",
        "whoever is farther gives the right result in float64, and is off by less than "
        f"{LOST_DIGITS:.3g} times what rounding explains; of updates and statistics also who is no "
        f"more than {FARTHER:g} times as far as one of those",
        lambda q: bool(q.far) and not q.wrong,
        "precision",
        "{evidence} In float64 it vanishes.",
    ),
    DecisionRow(
        "stage-none-right",
        "all are farther from the right answer than rounding explains, and none by lost digits",
        lambda q: q.all_wrong,
        "unknown",
        "{evidence} None gives that. {vote}.",
    ),
    DecisionRow(
        "gradient-wrong",
        "some are outside of what central differences and rounding allow",
        lambda q: bool(q.points),
        "bug",
        "{slopes} {vote}.",
        lambda q: q.wrong,
        "who is outside",
    ),
    DecisionRow(
        "stage-wrong",
        "no central differences are conclusive; some are farther from what independent libraries "
        "give in float64 than rounding explains",
        lambda q: q.exact is not None,
        "bug",
        "{against} {vote}.",
        lambda q: q.wrong,
        "who is farther",
    ),
    DecisionRow(
        "stage-undecided",
        "otherwise",
        lambda q: True,
        "unknown",
        "{vote}. Neither central differences nor float64 decide.{lost}",
    ),
)
