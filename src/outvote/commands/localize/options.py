"""`outvote localize`: which parameters of which layers make targets differ."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.options import (
    CONSISTENT,
    FINDINGS,
    INTERRUPTED,
    RAW,
    above_zero,
    target_names,
)
from outvote.core.errors import UsageError

_EXAMPLES = """\
examples:
  outvote localize outvote-out/findings/8f216f87d085 --targets tensorflow,jax
      a finding of `outvote check` or `outvote fuzz`: its layer, its input
  outvote localize model.keras --data val.npz --targets torch,jax,tensorflow
      a whole model, on the input on which each pair differs most
  outvote localize model.keras --t1 100
      suspect layers sooner

exit codes: 0 no layer is suspected, 1 layers are, 2 usage or set-up error, 130 stopped with Ctrl-C
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "localize",
        help="which parameters of which layers make targets differ",
        description="Change one parameter of a suspected layer at a time: where the difference "
        "disappears, it is a cause (AUDEE).",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    parser.add_argument("case", type=Path, help="a folder findings/<fingerprint>, or a model file")
    parser.add_argument("--data", type=Path, metavar="FILE", help=".npz; default: random inputs")
    parser.add_argument(
        "--targets", type=target_names, metavar="A,B,...", help="default: as in `outvote check`"
    )
    parser.add_argument(
        "--t1",
        type=above_zero,
        default=1000.0,
        metavar="R",
        help="change rate of a suspected layer (%(default)s)",
    )
    parser.add_argument(
        "--t2",
        type=above_zero,
        default=2.0,
        metavar="R",
        help="change rate below which a difference is gone (%(default)s)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("outvote-out"), metavar="DIR", help="default: %(default)s"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="default: ./outvote.toml")
    parser.add_argument("--seed", type=int, default=0, help="for random inputs (%(default)s)")
    parser.add_argument(
        "--timeout", type=above_zero, default=300.0, metavar="S", help="without progress"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(action=_localize)


def _localize(options: argparse.Namespace) -> int:
    from outvote.commands.localize.job import LocalizeJob
    from outvote.commands.localize.run import locate
    from outvote.commands.localize.show import show_localize
    from outvote.commands.terminal import Terminal
    from outvote.config import load_config
    from outvote.core.dialect import dialect_of
    from outvote.run.process import Limits
    from outvote.targets.choose import choose_for
    from outvote.targets.environments.provide import provide

    if options.t2 >= options.t1:
        raise UsageError(f"--t2 must be below --t1; received {options.t2:g} and {options.t1:g}")
    model, data = _case(options.case, options.data)
    config = load_config(options.config)
    chosen = choose_for(dialect_of(model), options.targets, config.targets, config.folder)
    terminal = Terminal(options.quiet)
    job = LocalizeJob(
        model=model,
        targets=provide(chosen, (), terminal.announce),
        data=data,
        t1=options.t1,
        t2=options.t2,
        seed=options.seed,
        limits=Limits(silence_seconds=options.timeout),
    )
    result = locate(job, options.out, terminal.watch)
    show_localize(result, options.out)
    if result["interrupted"]:
        return INTERRUPTED
    return CONSISTENT if result["verdict"] == "consistent" else FINDINGS


def _case(path: Path, data: Path | None) -> tuple[Path, Path | None]:
    """The model and its inputs: from a finding's folder, or as named."""
    if not path.is_dir():
        return path, data
    from outvote.core.dialect import case_in

    model, inputs = case_in(path)
    return model, data or inputs
