"""`outvote pollution`: training samples whose labels were falsified."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks
from outvote.commands.codes import exit_codes

if TYPE_CHECKING:
    from outvote.explore.job import ExploreJob

PLACE = 70
_EXAMPLES = """\
examples:
  outvote pollution clean.keras polluted.keras --data train.npz
      which samples of train.npz (x: pictures, y: labels) made the second model wrong
  outvote pollution clean.keras polluted.keras --data train.npz --count 5000 --target jax
      search from more seeds
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "pollution",
        "find falsified labels in training data",
        "Find inputs on which a clean and a polluted model differ, and the training samples that "
        "look like them: those with a falsified label (DeepXplore, 7.3).",
        _EXAMPLES + exit_codes("nothing suspected", "suspects"),
    )
    parser.add_argument("clean", type=Path, metavar="CLEAN", help="a model that is trusted")
    parser.add_argument("polluted", type=Path, metavar="POLLUTED", help="one that is not")
    blocks.add_data(parser, ".npz with x and y: training data", required=True)
    blocks.add_constraint(parser, "none")
    blocks.add_iterations(parser)
    blocks.add_step(parser, 3.0)
    blocks.add_exploration(parser)
    blocks.add_seed(parser, "all random choices")


def job_of(options: argparse.Namespace) -> ExploreJob:
    """What the options ask for."""
    from outvote.commands.pollution.job import pollution_job

    return pollution_job(
        models=(options.clean, options.polluted),
        data=options.data,
        constraint=options.constraint,
        iterations=options.iterations,
        step=options.step,
        seed=options.seed,
        **blocks.exploration_of(options),
    )
