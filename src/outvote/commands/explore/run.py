"""Runs an exploration and writes its reports: what the commands and the Python functions call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outvote.commands.coverage.job import CoverageJob
from outvote.commands.coverage.run import run_coverage
from outvote.commands.explore.result import explore_result, save_inputs
from outvote.commands.pollution.run import run_pollution
from outvote.explore.explore import run_explore
from outvote.explore.job import Explored, ExploreJob
from outvote.report import write_all
from outvote.report.folder import prepare_folder, saved
from outvote.run.watch import Watch, silent


def explore(job: ExploreJob, out: Path, watch: Watch = silent) -> dict[str, Any]:
    """Do the job; the folder gets `result.json`, `report.html` and the generated inputs."""
    return explore_and_keep(job, out, watch)[0]


def explore_and_keep(
    job: ExploreJob, out: Path | None, watch: Watch = silent
) -> tuple[dict[str, Any], Explored]:
    """The same with all that is known at the end; without a folder nothing is written."""
    if out is None:
        explored = run_explore(job, watch)
        return explore_result(explored), explored
    prepare_folder(out)
    explored = run_explore(job, watch)
    saved(lambda: save_inputs(explored, out), out)
    return _written(explore_result(explored), out), explored


def measure_coverage(job: CoverageJob, out: Path | None, watch: Watch = silent) -> dict[str, Any]:
    """Measure; the folder, if any, gets `result.json` and `report.html`."""
    if out is None:
        return run_coverage(job, watch)
    prepare_folder(out)
    return _written(run_coverage(job, watch), out)


def find_pollution(job: ExploreJob, out: Path | None, watch: Watch = silent) -> dict[str, Any]:
    """Find polluted training samples; the folder, if any, gets `result.json` and `report.html`."""
    if out is None:
        return run_pollution(job, watch)
    prepare_folder(out)
    return _written(run_pollution(job, watch), out)


def _written(result: dict[str, Any], out: Path) -> dict[str, Any]:
    saved(lambda: write_all(result, out), out)
    return result
