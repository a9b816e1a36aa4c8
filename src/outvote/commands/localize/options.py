"""`outvote localize`: which parameters of which layers make targets differ."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks, values
from outvote.commands.codes import exit_codes
from outvote.core.errors import UsageError

if TYPE_CHECKING:
    from outvote.commands.localize.job import LocalizeJob

PLACE = 30
_EXAMPLES = """\
examples:
  outvote localize outvote-out/findings/8f216f87d085 --targets tensorflow,jax
      a finding of `outvote check` or `outvote fuzz`: its layer, its input
  outvote localize model.keras --data val.npz --targets torch,jax,tensorflow
      a whole model, on the input on which each pair differs most
  outvote localize model.keras --t1 100
      suspect layers sooner
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "localize",
        "which parameters of which layers make targets differ",
        "Change one parameter of a suspected layer at a time: where the difference disappears, "
        "it is a cause (AUDEE).",
        _EXAMPLES + exit_codes("no layer is suspected", "layers are"),
    )
    parser.add_argument("case", type=Path, help="a folder findings/<fingerprint>, or a model file")
    blocks.add_data(parser)
    blocks.add_targets(parser, "default: as in `outvote check`")
    parser.add_argument(
        "--t1",
        type=values.above_zero,
        default=1000.0,
        metavar="R",
        help="change rate of a suspected layer (%(default)s)",
    )
    parser.add_argument(
        "--t2",
        type=values.above_zero,
        default=2.0,
        metavar="R",
        help="change rate below which a difference is gone (%(default)s)",
    )
    blocks.add_out(parser)
    blocks.add_config(parser)
    blocks.add_find_links(parser)
    blocks.add_seed(parser)
    blocks.add_quiet(parser)
    blocks.add_limits(parser)


def job_of(options: argparse.Namespace) -> LocalizeJob:
    """What the options ask for."""
    from outvote.commands.localize.job import LocalizeJob
    from outvote.core.dialect import case_in, dialect_of
    from outvote.targets.choose import choose_for

    if options.t2 >= options.t1:
        raise UsageError(f"--t2 must be below --t1; received {options.t2:g} and {options.t1:g}")
    model, data = options.case, options.data
    if model.is_dir():
        model, inputs = case_in(model)
        data = data or inputs
    config = blocks.config_of(options)
    chosen = choose_for(dialect_of(model), options.targets, config)
    return LocalizeJob(
        model=model,
        targets=tuple(chosen),
        data=data,
        t1=options.t1,
        t2=options.t2,
        seed=options.seed,
        limits=blocks.limits_of(options),
        links=tuple(options.find_links),
        out=options.out,
    )
