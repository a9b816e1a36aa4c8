"""`outvote report`: reads what campaigns have stored, and writes reports of it."""

from __future__ import annotations

from typing import Any

from outvote.commands.report.job import CompareJob, ReportJob
from outvote.commands.view import UNSEEN, View
from outvote.core.errors import UsageError
from outvote.report.folder import prepare_folder, write_into
from outvote.store.folder import comparison_of, stored_result
from outvote.store.store import FILE


def run(job: ReportJob | CompareJob, view: View = UNSEEN) -> dict[str, Any]:
    """Write the reports of a stored campaign again, or those of a comparison."""
    if isinstance(job, ReportJob):
        result = job.gate.judged(stored_result(job.out))
    else:
        result = comparison_of(job.folders)
        if (job.out / FILE).exists():
            raise UsageError(
                f"{job.out} holds a campaign, with reports of its own; choose another --out"
            )
        prepare_folder(job.out)
    write_into(job.out, result)
    return result
