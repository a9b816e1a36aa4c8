"""`outvote doctor`: starts what is installed, times it, and counts who can be compared."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import psutil

from outvote.commands.doctor.job import DoctorJob
from outvote.commands.targets.job import HealthJob
from outvote.commands.targets.run import Health, health
from outvote.commands.view import UNSEEN, View
from outvote.core.target import CAPABILITIES, Target
from outvote.core.version import VERSION

_TOLD = ("gradients", "train", "make", "watch", "float64", "versions")  # what users ask for


def run(job: DoctorJob, view: View = UNSEEN) -> dict[str, Any]:
    """The machine, every target, and what to do next; `inconsistent` where nothing can be done."""
    rows = health(HealthJob(job.targets, job.named), view)
    targets = {target.name: target for target in job.targets}
    working = [targets[row.name] for row in rows if row.state == "ok"]
    votes = sorted({target.library for target in working})
    return {
        "command": "doctor",
        "outvote": VERSION,
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "machine": f"{os.cpu_count()} processors, {psutil.virtual_memory().total / 2**30:.0f} GiB",
        "health": rows,
        "abilities": {row.name: _abilities(targets[row.name]) for row in rows},
        "libraries": votes,
        "testing": [name for name in ("pytest", "hypothesis") if _is_installed(name)],
        "advice": _advice(rows, votes),
        "verdict": "consistent" if len(working) > 1 else "inconsistent",
    }


def _abilities(target: Target) -> str:
    told = [name for name in _TOLD if target.can(name) and name in CAPABILITIES]
    return ", ".join([target.dialect, *told])


def _advice(rows: Sequence[Health], votes: Sequence[str]) -> list[str]:
    """What to install, and what is broken; the most useful first."""
    broken = [f"{row.name} is broken: {row.remedy}" for row in rows if row.state == "broken"]
    hints = dict.fromkeys(row.remedy for row in rows if row.state == "not installed")
    few = []
    if len(votes) < 2:
        few = ["a comparison needs two libraries; with three, one can be outvoted"]
    elif len(votes) < 3:
        few = ["of two libraries nobody can say which is wrong; a third one can outvote"]
    return [*broken, *few, *hints]


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
