"""`outvote show`: one finding, as the text of an issue."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.options import CONSISTENT, RAW
from outvote.core.errors import UsageError

_EXAMPLES = """\
examples:
  outvote show outvote-fuzz/findings/0123456789ab
  outvote show 0123 --out outvote-fuzz
      the beginning of a fingerprint is enough
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    show = commands.add_parser(
        "show",
        help="show one finding",
        description="Show one finding of a check or a campaign: what, where, who, and its proof.",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    show.add_argument("finding", metavar="FINDING", help="its folder, or its fingerprint")
    show.add_argument(
        "--out", type=Path, default=Path("outvote-fuzz"), metavar="DIR", help="default: %(default)s"
    )
    show.set_defaults(action=_show)


def _show(options: argparse.Namespace) -> int:
    from rich.markdown import Markdown

    from outvote.commands.terminal import Screen

    folder = _folder(options.finding, options.out)
    console = Screen()
    console.print(Markdown((folder / "report.md").read_text(encoding="utf-8")))
    if (folder / "repro.py").exists():
        console.print(f"repro: python {folder / 'repro.py'}", soft_wrap=True)
    return CONSISTENT


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
