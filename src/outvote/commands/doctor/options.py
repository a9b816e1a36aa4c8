"""`outvote doctor`: one page on this machine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks
from outvote.commands.codes import exit_codes

if TYPE_CHECKING:
    from outvote.commands.doctor.job import DoctorJob

PLACE = 115
_EXAMPLES = """\
examples:
  outvote doctor
  outvote doctor --targets jax,torch
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "doctor",
        "say what is installed, what works here, and what to install for more",
        "Start every installed target, and say in one page what each can do, how fast it is "
        "there, and what to install for more.",
        _EXAMPLES + exit_codes("two targets or more can be compared", "fewer can"),
    )
    blocks.add_targets(parser, "default: all")
    blocks.add_config(parser)
    blocks.add_quiet(parser)


def job_of(options: argparse.Namespace) -> DoctorJob:
    """What the options ask for."""
    from outvote.commands.doctor.job import DoctorJob
    from outvote.targets.choose import find_target

    known = blocks.known_of(options)
    if options.targets is None:
        return DoctorJob(tuple(known.values()))
    return DoctorJob(tuple(find_target(name, known) for name in options.targets), named=True)
