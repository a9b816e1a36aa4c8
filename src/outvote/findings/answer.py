"""What a proof holds the targets against, and what they gave, in words."""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.core.outputs import Outputs
from outvote.core.source import one_line
from outvote.findings.finding import Finding, Proof

_NUMBERS = 6  # that are shown
_LETTERS = 90


def right_answer(finding: Finding, proof: Proof) -> tuple[Array | None, str]:
    """What a right target gives, and who says so; None: a right one refuses."""
    seen = proof.observed
    if finding.kind == "shape" and seen.failures:
        return None, "the others, which refuse this with an exception"
    able = [n for n in (seen.vote.majority or seen.outputs) if n in seen.outputs]
    wrong = finding.targets if finding.accused else ()  # who may be the majority
    right = [n for n in able if n not in wrong] or [n for n in seen.outputs if n not in wrong]
    names = right or able
    given = seen.outputs[names[0]].arrays if names else ()
    if proof.expected is not None and finding.triage == "bug" and not _has_form(finding, proof):
        dtype = given[0].dtype if given else np.float64
        with np.errstate(over="ignore"):  # of float64 in a narrow type: infinity
            return proof.expected.arrays[0].astype(dtype), proof.source
    if not names:
        return None, "nobody: no target gives a result"
    decided = seen.vote.decided
    told = "what they agree on" if decided else "one side's answer: it is undecided"
    agree = ", ".join(names if decided else names[:1])
    return seen.outputs[names[0]].arrays[0], f"{agree}: {told}"


def shown_one(finding: Finding, proof: Proof) -> str:
    """The target to look at: the accused, or where nobody is, one that does not give the answer.

    That is who fails, or gives another thing than the side that the answer was taken from.
    """
    if finding.accused:
        return finding.accused
    seen = proof.observed
    first, *others = [*seen.outputs] or [""]
    answer = seen.outputs.get(first)
    apart = [n for n in others if answer is not None and not _same(seen.outputs[n], answer)]
    return next(iter([*seen.failures, *apart, *others]), first)


def _same(one: Outputs, other: Outputs) -> bool:
    pairs = list(zip(one.arrays, other.arrays, strict=False))
    equal = all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)
    return equal and one.dtypes == other.dtypes


def _has_form(finding: Finding, proof: Proof) -> bool:
    """Whether only the form is at stake, and those who agree have the right one."""
    agree = [proof.observed.outputs.get(name) for name in proof.observed.vote.majority]
    right = proof.expected.arrays[0].shape if proof.expected else ()
    return (
        finding.kind == "shape"
        and bool(agree)
        and all(found is not None and found.arrays[0].shape == right for found in agree)
    )


def told_of(name: str, proof: Proof) -> str:
    """What a target made of the smallest case, in one line."""
    failed = proof.observed.failures.get(name)
    if failed is not None:
        return one_line(f"{name} fails: {failed.message[:_LETTERS]}")
    found = proof.observed.outputs.get(name)
    return f"{one_line(name)} gives {first_of(found.arrays[0] if found else None)}"


def first_of(array: Array | None) -> str:
    """The first numbers of an array, with its type and shape."""
    if array is None:
        return "an exception"
    more = ", ..." if array.size > _NUMBERS else ""
    numbers = ", ".join(str(value) for value in array.ravel()[:_NUMBERS].tolist())
    return one_line(f"{array.dtype} {array.shape} {numbers}{more}")
