"""`outvote targets`: what is there, in which version, and whether it works."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks
from outvote.commands.codes import exit_codes

if TYPE_CHECKING:
    from outvote.commands.targets.job import Environments, HealthJob, Removal

PLACE = 110
_EXAMPLES = """\
examples:
  outvote targets
  outvote targets --targets "keras=={3.8.0,3.15.1}/torch,theano"
      builds what is not built yet, then starts each
  outvote targets --environments
  outvote targets --remove all
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "targets",
        "list the targets, their versions and health",
        "List every target: library versions, precision settings, health, and how to install "
        "what is missing. Targets of outvote.toml are started only where --targets names them.",
        _EXAMPLES + exit_codes("listed"),
    )
    blocks.add_config(parser)
    blocks.add_targets(parser, "default: all")
    parser.add_argument(
        "--environments", action="store_true", help="list what pip has built for other versions"
    )
    parser.add_argument(
        "--remove", metavar="KEY", help="delete one environment by its key, or all of them: all"
    )
    blocks.add_find_links(parser)
    blocks.add_quiet(parser)


def job_of(options: argparse.Namespace) -> HealthJob | Environments | Removal:
    """What the options ask for: the health of targets, or a look at what pip has built."""
    from outvote.commands.targets.job import Environments, HealthJob, Removal
    from outvote.targets.choose import find_target
    from outvote.targets.names import expanded

    if options.remove is not None:
        return Removal(options.remove)
    if options.environments:
        return Environments()
    known = blocks.known_of(options)
    if options.targets is None:
        return HealthJob(tuple(known.values()))
    names = [name for text in options.targets for name in expanded(text)]
    targets = tuple(find_target(name, known) for name in dict.fromkeys(names))
    return HealthJob(targets, named=True, links=tuple(options.find_links))
