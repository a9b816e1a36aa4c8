"""`outvote report`: write the reports of a stored campaign again, or compare several."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.gate_options import add_fail_on, add_known, exit_code, gate_of
from outvote.commands.options import CONSISTENT, RAW
from outvote.core.errors import UsageError

_EXAMPLES = """\
examples:
  outvote report outvote-fuzz
      result.json, report.md and report.html of the campaign in that folder, also while it runs
  outvote report outvote-fuzz --known known.toml --fail-on bug
      the same after a change of known.toml, and exit 1 if a bug is left that it does not list
  outvote report guided1 guided2 random1 random2 --out guided-vs-random
      strategies held against each other: campaigns of the same strategy are repetitions
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    report = commands.add_parser(
        "report",
        help="write the reports of a campaign again, or compare several campaigns",
        description="Write result.json, report.md and report.html of a stored campaign again. "
        "With several campaigns: compare their strategies.",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    report.add_argument(
        "folders", nargs="+", type=Path, metavar="DIR", help="the --out of `outvote fuzz`"
    )
    report.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where a comparison is written; default: beside the first, as DIR-compared",
    )
    add_known(report)
    add_fail_on(report, default=None)
    report.set_defaults(action=_report)


def _report(options: argparse.Namespace) -> int:
    from outvote.commands.fuzz.run import compare, report
    from outvote.commands.fuzz.show import FuzzTerminal

    folders: list[Path] = options.folders
    if len(folders) == 1:
        if options.out is not None:
            raise UsageError(
                f"--out {options.out} is for the comparison of several campaigns; the reports of "
                f"one are written into its own folder, {folders[0]}"
            )
        result = report(folders[0], gate_of(options, Path()))
        FuzzTerminal().show(result, folders[0])
        return CONSISTENT if options.fail_on is None else exit_code(result)
    if options.fail_on is not None or options.known is not None:
        raise UsageError("--fail-on and --known judge one campaign; several are only compared")
    first = folders[0].absolute()
    out = options.out or first.with_name(f"{first.name}-compared")
    FuzzTerminal().show_comparison(compare(folders, out), out)
    return CONSISTENT
