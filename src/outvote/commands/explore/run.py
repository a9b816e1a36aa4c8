"""`outvote explore`: models held against each other, or implementations of one."""

from __future__ import annotations

from typing import Any

from outvote.commands.explore.between import run_between
from outvote.commands.explore.job import BetweenTargets
from outvote.commands.explore.result import explore_result, save_inputs
from outvote.commands.record import recording
from outvote.commands.view import UNSEEN, View
from outvote.explore.explore import run_explore
from outvote.explore.job import Explored, ExploreJob
from outvote.report.folder import saved
from outvote.run.watch import Stage, silent


def run(job: ExploreJob | BetweenTargets, view: View = UNSEEN) -> dict[str, Any]:
    """Do the job; a folder gets the reports and the inputs that were found."""
    if isinstance(job, BetweenTargets):
        return run_between(job, view.watch)
    return explored_result(job, view.watch)[0]


def explored_result(job: ExploreJob, watch: Stage = silent) -> tuple[dict[str, Any], Explored]:
    """The result between models, with all that is known at the end."""
    out = job.out
    with recording("explore", out, watch) as record:
        explored = run_explore(job, record)
        if out is not None:
            saved(lambda: save_inputs(explored, out), out)
        return record.publish(explore_result(explored)), explored
