"""report.md: the finding as the text of a good upstream issue."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.causes import place_told
from outvote.core.dialect import dialect
from outvote.core.protocol import Hello
from outvote.core.target import Run
from outvote.findings.finding import Finding, Proof
from outvote.report.tables import Markdown, code, escape, fence, marked, table

_VALUES = 8
_SINCE, _VERSIONS = "## Since when", "## Versions"
_RELEASES = ("release", "outcome", "distance")
# What `with_releases` has put in before: at the end, so that no log can pass for it.
_SAID_BEFORE = re.compile(rf"\n{_SINCE}\n\n[^\n]*\n\n(\|[^\n]*\n)+\n*$")


def issue_text(
    finding: Finding,
    hellos: Mapping[str, Run[Hello]],
    script: str | None,
    short: str | None = None,
) -> str:
    """Title, how to see it at a glance, what happens, what should, the proof, versions."""
    proof = finding.proof
    lines = [
        marked("# {}", finding.title),
        "",
        *([*fence(short, "python"), ""] if short else []),
        escape(finding.reason),
        "",
        marked("- kind: {}; verdict: {}", finding.kind, finding.triage),
        marked("- accused: {}", finding.accused or "cannot be decided"),
    ]
    if proof is not None:
        lines += _shown(proof)
    elif finding.layer:
        shown = json.dumps(
            dialect(finding.dialect).layers.parameters(finding.layer), indent=2, default=str
        )
        lines += ["", marked("## The layer: {}", finding.layer.kind), "", *fence(shown, "json")]
    if script is not None:
        lines += [
            "",
            "## Script that judges",
            "",
            "It exits 1 while the bug is there, 0 when it is",
        ]
        lines += ["gone.", "", *fence(script, "python")]
    if proof is not None:
        lines += ["", "## What each target gives", "", *_actual(proof), "## Expected", ""]
        lines += _expected(proof)
    elif finding.fault and finding.fault.outputs:
        given = [(name, _values(o.arrays[0])) for name, o in finding.fault.outputs.items()]
        lines += ["", "## What each target gives", "", *table(("target", "values"), given)]
    if finding.detail:
        lines += ["", "## Log", "", *fence(finding.detail.strip()[-4000:])]
    return "\n".join([*lines, "", *_versions(hellos)])


def with_releases(text: str, summary: str, releases: Sequence[Mapping[str, Any]]) -> str:
    """The text with what `bisect` found, before the versions; an earlier such part goes."""
    before, heading, versions = text.rpartition(f"\n{_VERSIONS}\n")
    rows = [
        (r["version"], r["state"], "" if r["distance"] is None else format(r["distance"], ".2g"))
        for r in releases
    ]
    since = [_SINCE, "", escape(summary), "", *table(_RELEASES, rows)]
    before = _SAID_BEFORE.sub("", f"{before}\n").rstrip("\n")
    return "\n".join([before, "", *since]) + heading + versions


def _shown(proof: Proof) -> list[str]:
    layers = len(proof.specimen.model.layers)
    lines = [
        f"- smallest case: {layers} layer{'s' * (layers != 1)}, {proof.specimen.numbers} numbers "
        f"(from {proof.layers_before} and {proof.numbers_before})"
    ]
    if proof.matter:
        lines.append(f"- it needs {_codes(f'{k}={v!r}' for k, v in proof.matter.items())}")
    for cause in proof.causes:
        now = code(f"{cause.parameter}={cause.value!r}")
        lines.append(f"- targets agree with {_codes(map(repr, cause.cured_by))} instead of {now}")
    if proof.place is not None:
        lines.append(f"- where: {code(place_told(vars(proof.place)))}")
    elif proof.unplaced:
        lines.append(marked("- where: {}", proof.unplaced))
    if proof.shown is not None:
        lines.append(f"- shown again in {proof.shown} of {proof.tried} fresh workers")
    return lines


def _codes(texts: Iterable[str]) -> Markdown:
    return Markdown(", ".join(map(code, texts)))


def _actual(proof: Proof) -> list[str]:
    """What each target made of the smallest case; how far it is from the exact result, if known."""
    against = proof.errors
    several = len(_dtypes(proof)) > 1
    rows: list[list[str]] = []
    for name, found in proof.observed.outputs.items():
        values = _values(found.arrays[0])
        far = f"{against[name]:.2g}" if name in against else ""
        rows.append([name, f"{found.dtypes[0]} {values}" if several else values, far])
    for name, run in proof.observed.failures.items():
        text = " ".join(run.message.split())[:200]
        rows.append([name, f"{run.outcome.value}: {text}", ""])
    headings = ["target", "values", "distance to the exact result"]
    shown = len(headings) if against else 2
    return table(headings[:shown], [row[:shown] for row in rows])


def _dtypes(proof: Proof) -> set[str]:
    return {found.dtypes[0] for found in proof.observed.outputs.values()}


def _expected(proof: Proof) -> list[str]:
    if proof.expected is not None:
        return [
            escape(
                f"{_values(proof.expected.arrays[0])}, by {proof.source}. Rounding of the input "
                "and of intermediate tensors explains a relative distance of "
                f"{proof.observed.tolerance:.2g}."
            )
        ]
    return [escape(f"{proof.observed.vote.reason}.")]


def _values(array: Array) -> str:
    flat = np.asarray(array).reshape(-1)[:_VALUES]
    more = ", …" if array.size > _VALUES else ""
    return f"{array.shape}: " + ", ".join(f"{float(v):.6g}" for v in flat) + more


def _versions(hellos: Mapping[str, Run[Hello]]) -> list[str]:
    rows = []
    for name, run in hellos.items():
        told = ", ".join(f"{k} {v}" for k, v in run.reply.versions.items())
        place = f"Python {run.reply.python}, {run.reply.platform}"
        rows.append((name, told, place))
    return [_VERSIONS, "", *table(("target", "versions", "platform"), rows)]
