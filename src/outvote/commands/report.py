"""`outvote report`: write the reports of a stored campaign again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.gate_options import add_fail_on, add_known, exit_code, gate_of
from outvote.commands.options import CONSISTENT, RAW

_EXAMPLES = """\
examples:
  outvote report outvote-fuzz
      result.json, report.md and report.html of the campaign in that folder, also while it runs
  outvote report outvote-fuzz --known known.toml --fail-on bug
      the same after a change of known.toml, and exit 1 if a bug is left that it does not list
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    report = commands.add_parser(
        "report",
        help="write the reports of a campaign again",
        description="Write result.json, report.md and report.html of a stored campaign again.",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    report.add_argument("folder", type=Path, metavar="DIR", help="the --out of `outvote fuzz`")
    add_known(report)
    add_fail_on(report, default=None)
    report.set_defaults(action=_report)


def _report(options: argparse.Namespace) -> int:
    from outvote.fuzzing import report
    from outvote.terminal_fuzz import FuzzTerminal

    gate = gate_of(options, Path())
    result = report(options.folder, gate)
    FuzzTerminal().show(result, options.folder)
    return CONSISTENT if options.fail_on is None else exit_code(result)
