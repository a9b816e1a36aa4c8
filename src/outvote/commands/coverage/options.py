"""`outvote coverage`: how much of a model a test set exercises."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks, values
from outvote.commands.codes import exit_codes

if TYPE_CHECKING:
    from outvote.commands.coverage.job import CoverageJob

PLACE = 60
_EXAMPLES = """\
examples:
  outvote coverage model.keras --data test.npz
      neuron coverage over thresholds, in total and layer by layer
  outvote coverage model.keras --data test.npz --train train.npz
      k-multisection, boundary and strong-activation coverage too
  outvote coverage model.keras --data monday.npz --state covered.npz
  outvote coverage model.keras --data tuesday.npz --state covered.npz
      a growing test set: the second command runs only the new inputs
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "coverage",
        "how much of a model a test set exercises",
        "Measure neuron coverage (DeepXplore) and the criteria of DeepGauge.",
        _EXAMPLES + exit_codes("measured"),
    )
    parser.add_argument("model", type=Path, help=".keras, .h5 or .hdf5")
    blocks.add_data(parser, ".npz with x: the test set", required=True)
    blocks.add_threshold(parser, 0.25)
    parser.add_argument(
        "--train", type=Path, metavar="FILE", help=".npz with x: gives each neuron's usual range"
    )
    parser.add_argument(
        "--sections",
        type=values.positive,
        default=1000,
        metavar="K",
        help="of that range (%(default)s)",
    )
    parser.add_argument(
        "--top",
        type=values.positive,
        default=3,
        metavar="K",
        help="of top-k coverage (%(default)s)",
    )
    parser.add_argument(
        "--state", type=Path, metavar="FILE.npz", help="what earlier inputs covered; is updated"
    )
    blocks.add_exploration(parser)


def job_of(options: argparse.Namespace) -> CoverageJob:
    """What the options ask for."""
    from outvote.commands.coverage.job import CoverageJob

    return CoverageJob(
        model=options.model,
        data=options.data,
        threshold=options.threshold,
        train=options.train,
        sections=options.sections,
        top=options.top,
        state=options.state,
        **blocks.exploration_of(options),
    )
