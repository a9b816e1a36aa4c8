"""What a person sees when reports were written again."""

from __future__ import annotations

from typing import Any

from outvote import commands
from outvote.commands.fuzz.show import tell_comparison
from outvote.commands.report.job import CompareJob, ReportJob
from outvote.commands.terminal import Screen


def show(result: dict[str, Any], job: ReportJob | CompareJob, screen: Screen) -> None:
    """What the command showed that made the result; and where the reports are."""
    if result["command"] == "report":
        tell_comparison(result, screen)
        screen.report(job.out)
    else:
        commands.room(result["command"], "show").show(result, job, screen)
