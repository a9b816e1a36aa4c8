"""report.md: the finding as the text of a good upstream issue."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.dialect import dialect
from outvote.core.target import Run
from outvote.findings.finding import Finding, Proof

_VALUES = 8
_SINCE, _VERSIONS = "## Since when", "## Versions"


def issue_text(finding: Finding, hellos: Mapping[str, Run], script: str | None) -> str:
    """Title, what happens, what should, how to see it, versions."""
    proof = finding.proof
    lines = [
        f"# {finding.title}",
        "",
        finding.reason,
        "",
        f"- kind: {finding.kind}; verdict: {finding.triage}",
        f"- accused: {finding.accused or 'cannot be decided'}",
    ]
    if proof is not None:
        lines += _shown(proof)
    elif finding.layer:
        shown = json.dumps(
            dialect(finding.dialect).layers.parameters(finding.layer), indent=2, default=str
        )
        lines += ["", f"## The layer: {finding.layer.kind}", "", "```json", shown, "```"]
    if script is not None:
        lines += ["", "## Minimal script", "", "It exits 1 while the bug is there, 0 when it is"]
        lines += ["gone.", "", "```python", script.rstrip(), "```"]
    if proof is not None:
        lines += ["", "## What each target gives", *_actual(proof), "", "## Expected", ""]
        lines += _expected(proof)
    elif finding.fault and finding.fault.outputs:
        lines += ["", "## What each target gives", "", "| target | values |", "|---|---|"]
        lines += [
            f"| {name} | {_values(found.arrays[0])} |"
            for name, found in finding.fault.outputs.items()
        ]
    if finding.detail:
        lines += ["", "## Log", "", "```", finding.detail.strip()[-4000:], "```"]
    return "\n".join([*lines, "", *_versions(hellos), ""])


def with_releases(text: str, summary: str, releases: Sequence[Mapping[str, Any]]) -> str:
    """The text with what `bisect` found, before the versions; an earlier such part goes."""
    before, _, rest = text.partition(f"{_SINCE}\n")
    before, versions, after = (before + rest[rest.find(_VERSIONS) :]).partition(_VERSIONS)
    rows = [
        f"| {row['version']} | {row['state']} | "
        f"{'' if row['distance'] is None else format(row['distance'], '.2g')} |"
        for row in releases
    ]
    lines = [_SINCE, "", summary, "", "| release | outcome | distance |", "|---|---|---|", *rows]
    return "\n".join([before.rstrip("\n"), "", *lines, "", versions + after])


def _shown(proof: Proof) -> list[str]:
    layers = len(proof.specimen.model.layers)
    lines = [
        f"- smallest case: {layers} layer{'s' * (layers != 1)}, {proof.specimen.numbers} numbers "
        f"(from {proof.layers_before} and {proof.numbers_before})"
    ]
    if proof.matter:
        told = ", ".join(f"`{key}={value!r}`" for key, value in proof.matter.items())
        lines.append(f"- it needs {told}")
    for cause in proof.causes:
        cured = ", ".join(f"`{value!r}`" for value in cause.cured_by)
        lines.append(f"- targets agree with {cured} instead of `{cause.parameter}={cause.value!r}`")
    if proof.shown is not None:
        lines.append(f"- shown again in {proof.shown} of {proof.tried} fresh workers")
    return lines


def _actual(proof: Proof) -> list[str]:
    seen = proof.observed
    against = proof.errors
    head = "| target | values |" + (" distance to the exact result |" if against else "")
    lines = ["", head, "|---|---|" + ("---|" if against else "")]
    for name, found in seen.outputs.items():
        more = f" {against[name]:.2g} |" if name in against else " |" if against else ""
        dtype = f"{found.dtypes[0]} " if len(_dtypes(proof)) > 1 else ""
        lines.append(f"| {name} | {dtype}{_values(found.arrays[0])} |{more}")
    for name, run in seen.failures.items():
        text = " ".join(run.message.split())[:200].replace("|", "/")
        lines.append(f"| {name} | {run.outcome.value}: {text} |" + (" |" if against else ""))
    return lines


def _dtypes(proof: Proof) -> set[str]:
    return {found.dtypes[0] for found in proof.observed.outputs.values()}


def _expected(proof: Proof) -> list[str]:
    if proof.expected is not None:
        return [
            f"{_values(proof.expected.arrays[0])}, by {proof.source}. Rounding of the input and of "
            f"intermediate tensors explains a relative distance of {proof.observed.tolerance:.2g}."
        ]
    return [f"{proof.observed.vote.reason}."]


def _values(array: Array) -> str:
    flat = np.asarray(array).reshape(-1)[:_VALUES]
    more = ", …" if array.size > _VALUES else ""
    return f"{array.shape}: " + ", ".join(f"{float(v):.6g}" for v in flat) + more


def _versions(hellos: Mapping[str, Run]) -> list[str]:
    lines = [_VERSIONS, "", "| target | versions | platform |", "|---|---|---|"]
    for name, run in hellos.items():
        told = ", ".join(f"{k} {v}" for k, v in run.reply.get("versions", {}).items())
        python = run.reply.get("python", "")
        lines.append(f"| {name} | {told} | Python {python}, {run.reply.get('platform', '')} |")
    return lines
