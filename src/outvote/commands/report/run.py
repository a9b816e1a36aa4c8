"""`outvote report`: the reports of a folder again, from its store alone, or campaigns compared."""

from __future__ import annotations

from typing import Any

from outvote.commands.record import recording, written
from outvote.commands.report.job import CompareJob, ReportJob
from outvote.commands.view import UNSEEN, View
from outvote.core.errors import UsageError
from outvote.findings.gate import Gate
from outvote.store.folder import comparison_of, holds_campaign, last_run


def run(job: ReportJob | CompareJob, view: View = UNSEEN) -> dict[str, Any]:
    """Write the reports of the last command in a folder again, or those of a comparison."""
    if isinstance(job, ReportJob):
        return _again(job)
    result = comparison_of(job.folders)
    if holds_campaign(job.out):
        raise UsageError(
            f"{job.out} holds a campaign, with reports of its own; choose another --out"
        )
    with recording("report", job.out, view.watch) as record:
        return record.publish(result)


def _again(job: ReportJob) -> dict[str, Any]:
    """Findings are held against the gate that the run had, or against what is given instead."""
    last = last_run(job.out)
    gate = None if last.started.gate is None else Gate.restored(last.started.gate)
    if gate is None and (job.known or job.fail_on or job.baseline):
        raise UsageError(
            "--known, --baseline and --fail-on judge findings, and "
            f"`outvote {last.started.command}` in {job.out} has none; leave them out"
        )
    if gate is not None:
        gate = Gate(
            job.known or gate.known,
            job.fail_on or gate.fail_on,
            job.baseline or gate.baseline,
        )
        if gate.fail_on == "new" and gate.baseline.path is None:
            raise UsageError(
                "--fail-on new compares with an earlier run; name it with --baseline DIR"
            )
    return written(last.result, job.out, gate)
