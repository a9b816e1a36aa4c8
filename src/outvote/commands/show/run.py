"""`outvote show`: finds the folder of a finding and reads its text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outvote.commands.show.job import ShowJob
from outvote.commands.view import UNSEEN, View
from outvote.core.errors import UsageError


def run(job: ShowJob, view: View = UNSEEN) -> dict[str, Any]:
    """The text of the finding, and the path of its proof where it has one."""
    folder = _folder(job.finding, job.out)
    repro = folder / "repro.py"
    return {
        "command": "show",
        "text": (folder / "report.md").read_text(encoding="utf-8"),
        "repro": str(repro) if repro.exists() else None,
    }


def _folder(finding: str, out: Path) -> Path:
    if (Path(finding) / "report.md").is_file():
        return Path(finding)
    found = sorted(p for p in (out / "findings").glob(f"{finding}*") if (p / "report.md").is_file())
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"{out} holds no finding {finding!r}; name its folder, or another --out")
    names = ", ".join(path.name for path in found)
    raise UsageError(f"{finding!r} is the beginning of several findings: {names}")
