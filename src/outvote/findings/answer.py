"""What a proof holds the targets against."""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.findings.finding import Finding, Proof


def right_answer(finding: Finding, proof: Proof) -> tuple[Array | None, str]:
    """What a right target gives, and who says so; None: a right one refuses."""
    seen = proof.observed
    if finding.kind == "shape" and seen.failures:
        return None, "the others, which refuse this with an exception"
    names = [n for n in (seen.vote.majority or seen.outputs) if n in seen.outputs]
    if proof.expected is not None and finding.triage == "bug":
        given = seen.outputs[names[0]].arrays if names else ()
        dtype = given[0].dtype if given else np.float64
        return proof.expected.arrays[0].astype(dtype), proof.source
    if not names:
        return None, "nobody: no target gives a result"
    told = "what they agree on" if seen.vote.decided else "one side's answer: it is undecided"
    agree = ", ".join(names if seen.vote.decided else names[:1])
    return seen.outputs[names[0]].arrays[0], f"{agree}: {told}"
