"""`outvote coverage`: how much of a model a test set exercises."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.blocks import add_common, common, share
from outvote.commands.options import CONSISTENT, RAW, positive

_EXAMPLES = """\
examples:
  outvote coverage model.keras --data test.npz
      neuron coverage over thresholds, in total and layer by layer
  outvote coverage model.keras --data test.npz --train train.npz
      k-multisection, boundary and strong-activation coverage too
  outvote coverage model.keras --data monday.npz --state covered.npz
  outvote coverage model.keras --data tuesday.npz --state covered.npz
      a growing test set: the second command runs only the new inputs

exit codes: 0 measured, 2 usage or set-up error, 130 stopped with Ctrl-C
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "coverage",
        help="how much of a model a test set exercises",
        description="Measure neuron coverage (DeepXplore) and the criteria of DeepGauge.",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    parser.add_argument("model", type=Path, help=".keras, .h5 or .hdf5")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="FILE", help=".npz with x: the test set"
    )
    parser.add_argument(
        "--threshold",
        type=share,
        default=0.25,
        metavar="T",
        help="of a covered neuron (%(default)s)",
    )
    parser.add_argument(
        "--train", type=Path, metavar="FILE", help=".npz with x: gives each neuron's usual range"
    )
    parser.add_argument(
        "--sections", type=positive, default=1000, metavar="K", help="of that range (%(default)s)"
    )
    parser.add_argument(
        "--top", type=positive, default=3, metavar="K", help="of top-k coverage (%(default)s)"
    )
    parser.add_argument(
        "--state", type=Path, metavar="FILE.npz", help="what earlier inputs covered; is updated"
    )
    add_common(parser, chance=False)
    parser.set_defaults(action=_coverage)


def _coverage(options: argparse.Namespace) -> int:
    from outvote.commands.coverage.job import CoverageJob
    from outvote.commands.explore.run import measure_coverage
    from outvote.commands.explore.show import show_coverage
    from outvote.commands.terminal import Terminal

    job = CoverageJob(
        model=options.model,
        data=options.data,
        threshold=options.threshold,
        train=options.train,
        sections=options.sections,
        top=options.top,
        state=options.state,
        **common(options),
    )
    result = measure_coverage(job, options.out, Terminal(options.quiet).watch)
    show_coverage(result, options.out)
    return CONSISTENT
