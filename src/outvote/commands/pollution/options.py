"""`outvote pollution`: training samples whose labels were falsified."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.blocks import add_common, common
from outvote.commands.options import CONSISTENT, FINDINGS, INTERRUPTED, RAW, positive

_EXAMPLES = """\
examples:
  outvote pollution clean.keras polluted.keras --data train.npz
      which samples of train.npz (x: pictures, y: labels) made the second model wrong
  outvote pollution clean.keras polluted.keras --data train.npz --count 5000 --target jax
      search from more seeds

exit codes: 0 nothing suspected, 1 suspects, 2 usage or set-up error, 130 stopped with Ctrl-C
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "pollution",
        help="find falsified labels in training data",
        description="Find inputs on which a clean and a polluted model differ, and the training "
        "samples that look like them: those with a falsified label (DeepXplore, 7.3).",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    parser.add_argument("clean", type=Path, metavar="CLEAN", help="a model that is trusted")
    parser.add_argument("polluted", type=Path, metavar="POLLUTED", help="one that is not")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="FILE", help=".npz with x and y: training data"
    )
    parser.add_argument(
        "--constraint", default="none", metavar="C", help="as in `outvote explore` (%(default)s)"
    )
    parser.add_argument(
        "--iterations", type=positive, default=20, metavar="N", help="for each seed (%(default)s)"
    )
    add_common(parser)
    parser.set_defaults(action=_pollution)


def _pollution(options: argparse.Namespace) -> int:
    from outvote.commands.explore.run import find_pollution
    from outvote.commands.explore.show import show_pollution
    from outvote.commands.pollution.run import SEEDS, STEP
    from outvote.commands.terminal import Terminal
    from outvote.explore.job import ExploreJob

    settings = common(options)
    settings["count"] = options.count or SEEDS
    job = ExploreJob(
        models=(options.clean, options.polluted),
        data=options.data,
        constraint=options.constraint,
        iterations=options.iterations,
        step=STEP,
        **settings,
    )
    result = find_pollution(job, options.out, Terminal(options.quiet).watch)
    show_pollution(result, options.out)
    codes = {"consistent": CONSISTENT, "inconsistent": FINDINGS, "interrupted": INTERRUPTED}
    return codes[result["verdict"]]
