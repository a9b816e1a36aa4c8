"""`outvote targets`: what is there, in which version, and whether it works."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.options import CONSISTENT, RAW, add_find_links, target_names

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
    targets = commands.add_parser(
        "targets",
        help="list the targets, their versions and health",
        description="List every target: library versions, precision settings, health, and how "
        "to install what is missing.",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    targets.add_argument("--config", type=Path, metavar="FILE", help="default: ./outvote.toml")
    targets.add_argument("--targets", type=target_names, metavar="A,B,...", help="default: all")
    targets.add_argument(
        "--environments", action="store_true", help="list what pip has built for other versions"
    )
    targets.add_argument(
        "--remove", metavar="KEY", help="delete one environment by its key, or all of them: all"
    )
    add_find_links(targets)
    targets.set_defaults(action=_targets)


def _targets(options: argparse.Namespace) -> int:
    from outvote.commands.targets.run import describe_targets
    from outvote.commands.terminal import Terminal
    from outvote.config import load_config
    from outvote.targets.choose import find_target, known_targets
    from outvote.targets.environments.provide import provide
    from outvote.targets.environments.store import Store
    from outvote.targets.names import expanded

    if options.remove is not None:
        Terminal().say(f"{Store().remove(options.remove):.0f} MB freed")
        return CONSISTENT
    if options.environments:
        Terminal().show_environments(Store().entries(), Store().folder)
        return CONSISTENT
    config = load_config(options.config)
    known = known_targets(config.targets, config.folder)
    if options.targets is not None:
        wanted = [name for text in options.targets for name in expanded(text)]
        known = {name: find_target(name, known) for name in wanted}
    terminal = Terminal()
    if options.targets is not None:
        provide(known.values(), options.find_links, terminal.announce)
    terminal.show_targets(describe_targets(known, terminal.watch))
    return CONSISTENT
