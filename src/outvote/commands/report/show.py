"""What a person sees when reports were written again."""

from __future__ import annotations

from typing import Any

from outvote.commands.fuzz.show import show_campaign, tell_comparison
from outvote.commands.report.job import CompareJob, ReportJob
from outvote.commands.terminal import Screen


def show(result: dict[str, Any], job: ReportJob | CompareJob, screen: Screen) -> None:
    """The campaign, or strategies side by side; and where the reports are."""
    if isinstance(job, ReportJob):
        show_campaign(result, job.out, screen)
    else:
        tell_comparison(result, screen)
        screen.report(job.out)
