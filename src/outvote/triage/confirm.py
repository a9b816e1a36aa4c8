"""Confirm: the smallest case again in fresh workers. What does not repeat is flaky, and said so."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from outvote.bench.bench import Bench
from outvote.findings.finding import Finding


def confirmed(
    bench: Bench, findings: Sequence[Finding], times: int, seconds: float | None = None
) -> list[Finding]:
    """Every finding with the number of fresh workers in which it showed again.

    All findings share the fresh workers of a round: a start costs seconds. After so many `seconds`
    the others are left as they are; the first one is tried in any case.
    """
    with_proof = [f for f in findings if f.proof is not None and f.triage != "precision"]
    if not with_proof:
        return list(findings)
    shown = {f.fingerprint: 0 for f in with_proof}
    began = time.monotonic()
    chosen = with_proof
    for turn in range(times):
        for name in {n for f in chosen for n in _names(f)}:
            bench.pool.recycle(name)
        for place, finding in enumerate(chosen):
            late = seconds is not None and time.monotonic() - began > seconds / times
            if turn == 0 and place and late:
                chosen = chosen[:place]  # later rounds are of these
                break
            shown[finding.fingerprint] += _shows(bench, finding)
    done = {f.fingerprint: shown[f.fingerprint] for f in chosen}
    return [_told(f, done.get(f.fingerprint), times) for f in findings]


def _names(finding: Finding) -> list[str]:
    assert finding.proof is not None
    return [*finding.proof.observed.outputs, *finding.proof.observed.failures]


def _shows(bench: Bench, finding: Finding) -> bool:
    proof = finding.proof
    assert proof is not None
    seen = bench.observe(proof.specimen, _names(finding))
    return seen.kind == proof.observed.kind and seen.vote.groups == proof.observed.vote.groups


def _told(finding: Finding, shown: int | None, times: int) -> Finding:
    if shown is None or finding.proof is None:
        return finding
    finding = finding.but(proof=replace(finding.proof, shown=shown, tried=times))
    if shown == times:
        return finding
    return finding.but(
        triage="unknown",
        reason=f"{finding.reason} Flaky: it showed again in {shown} of {times} fresh workers.",
    )
