"""`outvote nan`: hunt NaN on one target."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.options import CONSISTENT, FINDINGS, INTERRUPTED, RAW, above_zero, budget
from outvote.core.errors import UsageError

_EXAMPLES = """\
examples:
  outvote nan model.keras --data val.npz --target torch
      inputs and weights together, for a minute
  outvote nan lenet5 --target jax --level IN --budget 5m
      a model of the zoo, its inputs alone

exit codes: 0 no NaN, 1 NaN or a failure, 2 usage or set-up error, 130 stopped with Ctrl-C
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "nan",
        help="hunt inputs and weights that make one target give NaN",
        description="A genetic search that spreads the logits of one target until a layer "
        "overflows (AUDEE). Every layer's range is watched.",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    parser.add_argument("model", help="model file, or name in the zoo")
    parser.add_argument("--data", type=Path, metavar="FILE", help=".npz; default: random inputs")
    parser.add_argument("--target", default="torch", metavar="T", help="default: %(default)s")
    parser.add_argument(
        "--level",
        choices=("IN", "WT", "IN-WT"),
        default="IN-WT",
        help="what evolves: inputs, weights, or both (%(default)s)",
    )
    parser.add_argument(
        "--budget", type=budget, default=("seconds", 60.0), metavar="TIME", help="default: 60s"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("outvote-out"), metavar="DIR", help="default: %(default)s"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="default: ./outvote.toml")
    parser.add_argument("--seed", type=int, default=0, help="of the random choices (%(default)s)")
    parser.add_argument(
        "--timeout", type=above_zero, default=60.0, metavar="S", help="without progress"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(action=_nan)


def _nan(options: argparse.Namespace) -> int:
    from outvote.commands.blocks import seeds_of
    from outvote.commands.localize.show import show_nan
    from outvote.commands.nan.job import HuntJob
    from outvote.commands.nan.run import hunt
    from outvote.commands.terminal import Terminal
    from outvote.config import load_config
    from outvote.core.dialect import dialect_of
    from outvote.run.process import Limits
    from outvote.targets.choose import choose_for
    from outvote.targets.environments.provide import provide

    what, amount = options.budget
    if what != "seconds":
        raise UsageError(f"--budget of a hunt is a time, such as 60s; received {amount:g}")
    (seed,) = seeds_of([options.model], [options.data] if options.data else [])
    config = load_config(options.config)
    chosen = choose_for(dialect_of(seed.model), [options.target], config.targets, config.folder)
    terminal = Terminal(options.quiet)
    (target,) = provide(chosen, (), terminal.announce)
    if not target.can("ranges"):
        raise UsageError(f"{target.name} cannot watch its layers; choose another --target")
    if not target.is_eager:
        raise UsageError(
            f"layers are watched one by one, and {target.name} compiles them together; "
            "choose an eager target, such as torch"
        )
    job = HuntJob(
        model=seed.model,
        target=target,
        data=seed.data,
        level=options.level,
        seconds=amount,
        seed=options.seed,
        limits=Limits(silence_seconds=options.timeout),
    )
    result = hunt(job, options.out, terminal.watch)
    show_nan(result, options.out)
    if result["interrupted"]:
        return INTERRUPTED
    return CONSISTENT if result["verdict"] == "consistent" else FINDINGS
