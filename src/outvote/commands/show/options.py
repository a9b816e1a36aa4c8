"""`outvote show`: one finding, as the text of an issue."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks
from outvote.commands.codes import exit_codes

if TYPE_CHECKING:
    from outvote.commands.show.job import ShowJob

PLACE = 100
_EXAMPLES = """\
examples:
  outvote show outvote-fuzz/findings/0123456789ab
  outvote show 0123 --out outvote-fuzz
      the beginning of a fingerprint is enough
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "show",
        "show one finding",
        "Show one finding of a check or a campaign: what, where, who, and its proof.",
        _EXAMPLES + exit_codes("shown"),
    )
    parser.add_argument("finding", metavar="FINDING", help="its folder, or its fingerprint")
    blocks.add_out(parser, "outvote-fuzz")


def job_of(options: argparse.Namespace) -> ShowJob:
    """What the options ask for."""
    from outvote.commands.show.job import ShowJob

    return ShowJob(options.finding, options.out)
