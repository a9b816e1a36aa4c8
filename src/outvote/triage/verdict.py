"""Triage: is it a bug, a difference that is meant, or rounding? And whose?

The decision is a table: the first row that holds. docs/verdicts.md prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from outvote.bench.bench import Bench
from outvote.core.specimen import Specimen
from outvote.core.target import Outcome
from outvote.core.text import shortened
from outvote.judge.observation import Observation
from outvote.judge.rows import DecisionRow, Words, first, sentence
from outvote.judge.tolerance import DIGIT, ELEMENT, FARTHER, FITS, LAYER_PLACES, LOST_DIGITS
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
    return Verdict(row.triage, wrong, sentence(row, Words(asked, _WORDS)), exact, errors, row.name)


# Who is accused.


def _outvoted(asked: Inquiry) -> tuple[str, ...]:
    return asked.seen.vote.outvoted


def _failures(asked: Inquiry) -> tuple[str, ...]:
    return tuple(n for n in asked.seen.odd if n in asked.seen.failures)


def _misshapen(asked: Inquiry) -> tuple[str, ...]:
    return tuple(n for n, found in asked.shapes.items() if found != _right_shape(asked))


# What rows ask, where it takes more than one question.


def _fails_with_errors(asked: Inquiry) -> bool:
    """Whether nobody died or hung: no model may do that to a process."""
    return all(run.outcome is Outcome.ERROR for run in asked.seen.failures.values())


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


def _are_excused(asked: Inquiry, names: Iterable[str]) -> bool:
    """Of those who cannot be held to float64; the others must be right there."""
    excused = set(names) & set(asked.not_in_float64)
    return bool(excused) and set(asked.wrong) <= excused | set(asked.right_in_float64)


# Words of the sentences. Each tells what was done.


def _against(asked: Inquiry) -> str:
    """How far everybody is from the exact result, and what rounding explains of that."""
    if asked.exact is None:
        return f"{_vote(asked)}."
    told = ", ".join(f"{n} {e:.2g}" for n, e in asked.errors.items())
    far = [asked.gaps[n] for n in asked.wrong] or list(asked.gaps.values())
    limit = min((gap.limit for gap in far), default=0.0)
    return f"Distance to {asked.exact.source}: {told}; rounding explains {limit:.2g}."


def _vote(asked: Inquiry) -> str:
    return asked.seen.vote.reason


def _float64(asked: Inquiry) -> str:
    told = asked.errors_in_float64
    return ", ".join(f"{n} (distance {told[n]:.2g})" for n in asked.right_in_float64)


def _not_wide(asked: Inquiry) -> str:
    others = _float64(asked)
    told = _listed(asked.not_in_float64)
    return f"{told} did not compute it in float64{f', {others} did' if others else ''}"


def _settings(asked: Inquiry) -> str:
    return "; ".join(
        f"{name} computes {setting.what}in {setting.name} by its own setting"
        for name, setting in asked.declared.items()
    )


def _shape(asked: Inquiry) -> str:
    found = _right_shape(asked)
    return str(found[0]) if found else "nothing"


def _source(asked: Inquiry) -> str:
    exact = asked.reference if asked.failed else asked.exact
    return exact.source if exact else ""


def _listed(names: Iterable[str]) -> str:
    return " and ".join(names)


_WORDS: Mapping[str, Callable[[Inquiry], str]] = {
    "against": _against,
    "vote": _vote,
    "source": _source,
    "results": lambda q: _listed(q.seen.outputs),
    "narrow": lambda q: _listed(q.without_64_bits),
    "listed": lambda q: q.meant.text(q.specimen.last.kind) if q.meant else "",
    "shape": _shape,
    "told": lambda q: q.told_type or "",
    "refusal": lambda q: shortened(q.refusal or ""),
    "settings": _settings,
    "float64": _float64,
    "not_wide": _not_wide,
    "overflown": lambda q: _listed(q.overflown),
    "in_turn": lambda q: f"{q.added_in_turn:.2g}",
    "outvoted": lambda q: _listed(q.seen.vote.outvoted),
    "right": lambda q: q.right[0],
    "wrong": lambda q: _listed(q.wrong),
    "nearest": lambda q: min(q.errors, key=q.errors.__getitem__),
}

ROWS: tuple[DecisionRow[Inquiry], ...] = (
    # Some fail.
    DecisionRow(
        "illegal",
        "a target refuses the layer with an error, and so does the specification's own checker",
        lambda q: q.failed and _fails_with_errors(q) and q.refusal is not None,
        "difference",
        "Who refuses it may: the specification's own checker refuses it too ({refusal}).",
    ),
    DecisionRow(
        "fails",
        "a target fails, and a majority of independent libraries speaks against it",
        lambda q: q.failed and q.seen.vote.decided,
        "bug",
        "{vote}.",
        _failures,
        "who fails",
    ),
    DecisionRow(
        "fails-reference",
        "a target fails, and all others give what our own reference gives",
        lambda q: q.failed and _results_are_right(q),
        "bug",
        "{vote}; {source} gives what {results} gives.",
        _failures,
        "who fails",
    ),
    DecisionRow(
        "fails-undecided",
        "a target fails, otherwise",
        lambda q: q.failed,
        "unknown",
        "{vote}.",
    ),
    # Results of another number, shape or type.
    DecisionRow(
        "listed-form",
        "shapes or types differ as `differences.toml` lists it",
        lambda q: _has_form(q) and q.meant is not None,
        "difference",
        "{listed}",
        _outvoted,
        "the outvoted",
    ),
    DecisionRow(
        "refused",
        "a majority refuses what others give an empty result for",
        lambda q: _has_form(q) and bool(q.seen.failures),
        "bug",
        "{vote}.",
        _outvoted,
        "the outvoted",
    ),
    DecisionRow(
        "declared-width",
        "equal integers in fewer bits, of targets that declare to have none of 64 bits",
        lambda q: _has_form(q) and q.only_width and bool(q.without_64_bits),
        "precision",
        "Values and shapes are equal; {narrow} passes on narrower integers, having none of 64 "
        "bits by its own setting.",
    ),
    DecisionRow(
        "width",
        "equal integers in more or fewer bits, otherwise",
        lambda q: _has_form(q) and q.only_width,
        "difference",
        "Values and shapes are equal, only the integer type differs; {vote}.",
        _outvoted,
        "the outvoted",
    ),
    DecisionRow(
        "shape",
        "some have the shape of the exact result, and some do not",
        lambda q: _has_form(q) and q.exact is not None and 0 < len(_misshapen(q)) < len(q.shapes),
        "bug",
        "{vote}; {source} gives {shape}.",
        _misshapen,
        "who has another shape",
    ),
    DecisionRow(
        "shape-of-none",
        "nobody has the shape of the exact result",
        lambda q: _has_form(q) and q.exact is not None and len(_misshapen(q)) == len(q.shapes),
        "unknown",
        "{vote}; {source} gives {shape}.",
    ),
    DecisionRow(
        "type",
        "shapes are equal, and some give the float that the layer is told to compute in, others "
        "another float",
        lambda q: _has_form(q) and 0 < len(q.mistyped) < len(q.shapes),
        "bug",
        "The layer is told to compute in {told}; {vote}.",
        lambda q: q.mistyped,
        "who gives another",
    ),
    DecisionRow(
        "form",
        "shapes or types differ, and a majority decides",
        lambda q: _has_form(q) and q.seen.vote.decided,
        "bug",
        "{vote}.",
        _outvoted,
        "the outvoted",
    ),
    DecisionRow(
        "form-undecided",
        "shapes or types differ, otherwise",
        _has_form,
        "unknown",
        "{vote}.",
    ),
    # Numbers. Whoever is farther from the exact result than rounding explains is wrong; without
    # an exact result, whoever is outvoted.
    DecisionRow(
        "rounding",
        "nobody is wrong: all are within rounding of the exact result",
        lambda q: q.exact is not None and not q.wrong,
        "precision",
        "{against}",
    ),
    DecisionRow(
        "range",
        "nobody is wrong on elements whose exact result fits into the type",
        lambda q: q.fits_nowhere_else,
        "precision",
        "{against} Where they are farther, the exact result is beyond the largest number of the "
        "type: overflow.",
    ),
    DecisionRow(
        "listed",
        "`differences.toml` lists it",
        lambda q: q.meant is not None,
        "difference",
        "{listed} {against}",
        lambda q: q.seen.vote.outvoted if q.exact is None or q.all_wrong else q.wrong,
        "who is wrong, or outvoted where all are",
    ),
    DecisionRow(
        "undefined",
        "nobody is wrong on elements whose exact result is a number, and nothing read is NaN",
        lambda q: q.is_undefined,
        "difference",
        "{against} Where they are farther there is no exact result: infinity minus infinity, or "
        "times 0.",
    ),
    DecisionRow(
        "declared",
        "who is wrong declares coarser arithmetic (TF32, bf16, f16) that explains it",
        lambda q: bool(q.wrong) and len(q.declared) == len(q.wrong),
        "precision",
        "{against} {settings}, which explains it.",
    ),
    DecisionRow(
        "narrow-inside",
        "who is wrong gives float64, and is right to the digits of float32",
        lambda q: q.exact is not None and q.narrow_inside,
        "precision",
        "{against} {wrong} gives float64 with the digits of float32.",
    ),
    DecisionRow(
        "overflow",
        "who is wrong gives NaN or infinity where the exact result is at most "
        f"{FITS:g} of the largest number of the type, and another who computes in it does not",
        lambda q: _has_values(q) and bool(q.overflown) and not q.all_overflow,
        "bug",
        "{against} NaN or infinity comes of {overflown} on the way to a result that fits. {vote}.",
        lambda q: q.overflown,
        "who gives NaN or infinity",
    ),
    DecisionRow(
        "overflow-of-all",
        "all give NaN or infinity where the exact result is so small",
        lambda q: _has_values(q) and bool(q.overflown),
        "bug",
        "{against} All give NaN or infinity on the way to a result that fits.",
        lambda q: q.overflown,
        "all",
    ),
    DecisionRow(
        "float64",
        "who is wrong gives the exact result in float64 (one digit nearer at least), and is wrong "
        f"by less than {LOST_DIGITS:.3g} times what rounding explains and no more than {ELEMENT:g} "
        f"of the largest element, or by last places, as below; where all are wrong, the outvoted "
        f"are no more than {FARTHER:g} times as far as the majority",
        _vanishes,
        "precision",
        "{against} In float64 it vanishes: asked there, the exact result comes from {float64}.",
    ),
    DecisionRow(
        "last-places",
        "who is wrong did not compute it in float64, and every element that is off is off by no "
        f"more than {LAYER_PLACES:g} last places of 1, or of the largest number read and "
        f"{ELEMENT:g} of the largest element",
        lambda q: _are_excused(q, q.last_places),
        "precision",
        "{against} {not_wide}; every element that is off is off by no more than "
        f"{LAYER_PLACES:g} last places of the largest number read, or of 1.",
    ),
    DecisionRow(
        "in-turn",
        "who is wrong did not compute it in float64, and is no more than "
        f"{FARTHER:g} times as far from the exact result as the layer's terms, added one after the "
        "other in its type",
        lambda q: _are_excused(q, q.as_in_turn),
        "precision",
        "{against} {not_wide}; the layer's terms, added one after the other in its type, are off "
        "by {in_turn}: the plainest way to add them is no better.",
    ),
    DecisionRow(
        "equally-far",
        f"all are wrong, by no more than {ELEMENT:g} of the largest element, and none by more than "
        f"{FARTHER:g} times the nearest",
        lambda q: q.exact is not None and q.all_wrong and q.is_equally_far,
        "precision",
        "{against} None is much nearer than the others.",
    ),
    DecisionRow(
        "none-right",
        f"all are wrong, a majority decides, and some are {FARTHER:g} times as far as the nearest",
        lambda q: q.exact is not None and q.all_wrong and q.seen.vote.decided and bool(q.far),
        "bug",
        "{vote}. {against} None gives that.",
        lambda q: tuple(n for n in q.far if n in q.seen.vote.outvoted) or q.far,
        "the outvoted who are far; if none is, whoever is far",
    ),
    DecisionRow(
        "none-right-farther",
        f"all are wrong, no majority decides, and some are {DIGIT:g} times as far as the nearest",
        lambda q: q.exact is not None and q.all_wrong and bool(q.digits_farther),
        "bug",
        "{against} None gives that, and {nearest} is nearest. {vote}.",
        lambda q: q.digits_farther,
        "who is so far",
    ),
    DecisionRow(
        "none-right-undecided",
        "all are wrong, otherwise",
        lambda q: q.exact is not None and q.all_wrong,
        "unknown",
        "{against} {vote}.",
    ),
    DecisionRow(
        "no-farther",
        f"who is wrong is no more than {FARTHER:g} times as far from the exact result as another "
        "who is right",
        lambda q: q.exact is not None and q.is_no_farther,
        "precision",
        "{against} None is much farther than the others.",
    ),
    DecisionRow(
        "undecided",
        "there is no exact result, and no majority decides",
        lambda q: q.exact is None and not q.seen.vote.decided,
        "unknown",
        "{vote}. No exact result could be had.",
    ),
    DecisionRow(
        "meant-nan",
        "there is no exact result, and the outvoted one, whose library says what the layer means, "
        "gives NaN at the same places in float64",
        lambda q: q.exact is None and q.means_nan,
        "difference",
        "{vote}. {outvoted}, whose layer it is, gives NaN there in float64 too: others do not "
        "have this corner.",
        lambda q: q.seen.vote.majority,
        "the majority",
    ),
    DecisionRow(
        "edge",
        "the layer does more than compare and move numbers, and moving the input by one last place "
        "takes a right target to the answer of the wrong, element by element",
        lambda q: q.is_on_an_edge,
        "precision",
        "{against} A discontinuity: moving the input by one unit in the last place makes {right} "
        "give the answer of {wrong}.",
    ),
    DecisionRow(
        "majority-wrong",
        "who is wrong is of the majority",
        lambda q: bool(set(q.wrong) & set(q.seen.vote.majority)),
        "bug",
        "{against} Here the majority is wrong. {vote}.",
        lambda q: q.wrong,
        "who is wrong",
    ),
    DecisionRow(
        "wrong",
        "otherwise, with an exact result",
        lambda q: q.exact is not None,
        "bug",
        "{against} {vote}.",
        lambda q: q.wrong,
        "who is wrong",
    ),
    DecisionRow(
        "outvoted",
        "otherwise",
        lambda q: True,
        "bug",
        "{vote}. No exact result could be had.",
        _outvoted,
        "the outvoted",
    ),
)
