"""What `check` says of a sample on which targets part: part of torch_ops.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outvote.commands.check.job import Job
from outvote.commands.check.run import Check
from outvote.core.batch import GraphCase
from outvote.core.case import Case, Data
from outvote.core.errors import UsageError
from outvote.dialects.torch_export.nouns.program import program_in
from outvote.findings.finding import Finding
from outvote.judge.truth import interpret
from outvote.run.pool import Pool

Way = tuple[str, ...]  # what a parting looks like
_MINIMISE = 5.0  # seconds


class SampleJudge:
    """Judges the first sample of each way in which targets part."""

    def __init__(self, pool: Pool, met: set[Way], out: Path | None) -> None:
        self._pool = pool
        self._met = {(), *met}
        self._out = out

    def verdicts(
        self, number: int, way: Way, case: GraphCase, names: Sequence[str]
    ) -> list[dict[str, Any]]:
        """One for each finding; none where the way is known."""
        if way in self._met:
            return []
        self._met.add(way)
        targets = tuple(self._pool.targets[name] for name in names)
        job = Job(Path(f"{number}.pt2"), targets, minimise=_MINIMISE, allow_empty=True)
        check = Check.opened(self._pool, job, case=_case(case))
        try:
            check.run()
        except UsageError as error:  # one target alone could run it
            return [{"triage": "alone", "title": str(error), "reason": "", "accused": None}]
        if self._out is not None and check.checked.findings:
            check.write_evidence(self._out / str(number))
        return [_told(finding) for finding in check.checked.findings]


def _case(case: GraphCase) -> Case:
    read = program_in(case.content)
    axes = tuple(item.batch for item in read.model.inputs)
    data = Data(tuple(case.feeds), None, "drawn", axes)
    return Case(read.model, read.output_shapes, data, interpret(None, read.output_shapes[0]))


def _told(finding: Finding) -> dict[str, Any]:
    return {
        "triage": finding.triage,
        "title": finding.title,
        "reason": finding.reason,
        "accused": finding.accused,
        "layer": finding.layer.kind if finding.layer else None,
    }
