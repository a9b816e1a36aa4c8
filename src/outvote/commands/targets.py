"""`outvote targets`: what is there, in which version, and whether it works."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.options import CONSISTENT, RAW, target_names


def add(commands: Any) -> None:
    """Add the command to the parser."""
    targets = commands.add_parser(
        "targets",
        help="list the targets, their versions and health",
        description="List every target: library versions, precision settings, health, and how "
        "to install what is missing.",
        formatter_class=RAW,
    )
    targets.add_argument("--config", type=Path, metavar="FILE", help="default: ./outvote.toml")
    targets.add_argument("--targets", type=target_names, metavar="A,B,...", help="default: all")
    targets.set_defaults(action=_targets)


def _targets(options: argparse.Namespace) -> int:
    from outvote.config import load_config
    from outvote.health import describe_targets
    from outvote.targets import find_target, known_targets
    from outvote.terminal import Terminal

    config = load_config(options.config)
    known = known_targets(config.targets, config.folder)
    if options.targets is not None:
        known = {name: find_target(name, known) for name in options.targets}
    terminal = Terminal()
    terminal.show_targets(describe_targets(known, terminal.watch))
    return CONSISTENT
