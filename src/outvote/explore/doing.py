"""Runs an exploration and writes its reports: what the command calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outvote.api import prepare_folder, saved
from outvote.checking import Watch, silent
from outvote.explore.coverage import CoverageJob, run_coverage
from outvote.explore.exploring import run_explore
from outvote.explore.job import ExploreJob
from outvote.explore.outcome import explore_result, save_inputs
from outvote.report import explore_html, json_file


def explore(job: ExploreJob, out: Path, watch: Watch = silent) -> dict[str, Any]:
    """Do the job; the folder gets `result.json`, `report.html` and the generated inputs."""
    prepare_folder(out)
    explored = run_explore(job, watch)
    result = explore_result(explored)

    def write() -> None:
        save_inputs(explored, out)
        json_file.write(result, out)
        explore_html.write(result, out)

    saved(write, out)
    return result


def measure_coverage(job: CoverageJob, out: Path, watch: Watch = silent) -> dict[str, Any]:
    """Measure; the folder gets `result.json` and `report.html`."""
    prepare_folder(out)
    result = run_coverage(job, watch)

    def write() -> None:
        json_file.write(result, out)
        explore_html.write(result, out)

    saved(write, out)
    return result
