"""`outvote nan`: hunt NaN on one target."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks
from outvote.commands.codes import exit_codes
from outvote.core.errors import UsageError

if TYPE_CHECKING:
    from outvote.commands.nan.job import NanJob

PLACE = 40
_EXAMPLES = """\
examples:
  outvote nan model.keras --data val.npz --target torch
      inputs and weights together, for a minute
  outvote nan lenet5 --target jax --level IN --budget 5m
      a model of the zoo, its inputs alone
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "nan",
        "hunt inputs and weights that make one target give NaN",
        "A genetic search that spreads the logits of one target until a layer overflows (AUDEE). "
        "Every layer's range is watched.",
        _EXAMPLES + exit_codes("no NaN", "NaN or a failure"),
    )
    parser.add_argument("model", help="model file, or name in the zoo")
    blocks.add_data(parser)
    blocks.add_target(parser, "default: %(default)s", "torch")
    parser.add_argument(
        "--level",
        choices=("IN", "WT", "IN-WT"),
        default="IN-WT",
        help="what evolves: inputs, weights, or both (%(default)s)",
    )
    blocks.add_budget(parser, "a time; default: 60s", ("seconds", 60.0))
    blocks.add_out(parser)
    blocks.add_config(parser)
    blocks.add_find_links(parser)
    blocks.add_seed(parser, "the random choices")
    blocks.add_quiet(parser)
    blocks.add_limits(parser, 60)


def job_of(options: argparse.Namespace) -> NanJob:
    """What the options ask for."""
    from outvote.commands.nan.job import NanJob
    from outvote.core.dialect import dialect_of
    from outvote.targets.choose import choose_for

    what, amount = options.budget
    if what != "seconds":
        raise UsageError(f"--budget of a hunt is a time, such as 60s; received {amount:g}")
    (seed,) = blocks.seeds_of([options.model], [options.data] if options.data else [])
    config = blocks.config_of(options)
    wing = dialect_of(seed.model)
    (target,) = choose_for(wing, [options.target], config)
    return NanJob(
        model=seed.model,
        target=target,
        data=seed.data,
        level=options.level,
        seconds=amount,
        seed=options.seed,
        limits=blocks.limits_of(options),
        links=tuple(options.find_links),
        out=options.out,
    )
