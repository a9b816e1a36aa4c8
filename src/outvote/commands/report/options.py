"""`outvote report`: write the reports of a folder again, or compare campaigns."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks
from outvote.commands.codes import exit_codes
from outvote.core.errors import UsageError

if TYPE_CHECKING:
    from outvote.commands.report.job import CompareJob, ReportJob

PLACE = 90
_EXAMPLES = """\
examples:
  outvote report outvote-out
      every report of the last command in that folder again, from its outvote.db
  outvote report outvote-fuzz
      of a campaign also while it runs
  outvote report outvote-fuzz --known known.toml --fail-on bug
      the same after a change of known.toml, and exit 1 if a bug is left that it does not list
  outvote report guided1 guided2 random1 random2 --out guided-vs-random
      strategies held against each other: campaigns of the same strategy are repetitions
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "report",
        "write the reports of a command again, or compare campaigns",
        "Write result.json and all other reports of the last command in a folder again, from its "
        "outvote.db. With several campaigns: compare their strategies.",
        _EXAMPLES + exit_codes("written", "findings, with --fail-on"),
    )
    parser.add_argument(
        "folders", nargs="+", type=Path, metavar="DIR", help="the --out of a command, or campaigns"
    )
    blocks.add_out(
        parser, None, "where a comparison is written; default: beside the first, as DIR-compared"
    )
    blocks.add_known(parser)
    blocks.add_fail_on(parser, default=None)


def job_of(options: argparse.Namespace) -> ReportJob | CompareJob:
    """What the options ask for: the reports of one folder, or a comparison of campaigns."""
    from outvote.commands.report.job import CompareJob, ReportJob
    from outvote.findings.baseline import load_baseline
    from outvote.findings.known import load_known

    folders: tuple[Path, ...] = tuple(options.folders)
    if len(folders) == 1:
        if options.out is not None:
            raise UsageError(
                f"--out {options.out} is for the comparison of several campaigns; the reports of "
                f"one are written into its own folder, {folders[0]}"
            )
        known = load_known(options.known, Path()) if options.known is not None else None
        baseline = load_baseline(options.baseline) if options.baseline is not None else None
        judges = options.fail_on is not None
        return ReportJob(folders[0], known, options.fail_on, baseline, judges=judges)
    if any(given is not None for given in (options.fail_on, options.known, options.baseline)):
        raise UsageError(
            "--fail-on, --known and --baseline judge one campaign; several are only compared"
        )
    first = folders[0].absolute()
    return CompareJob(folders, options.out or first.with_name(f"{first.name}-compared"))
