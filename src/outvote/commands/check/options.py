"""`outvote check`: one trained model on several targets."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks, values
from outvote.commands.codes import exit_codes
from outvote.core.errors import UsageError

if TYPE_CHECKING:
    from outvote.commands.check.job import Job

PLACE = 10
_EXAMPLES = """\
examples:
  outvote check model.keras --data val.npz
      on all installed targets; val.npz holds x (or x0, x1, ...) and optionally y
  outvote check model.keras --targets tensorflow,tensorflow:xla,jax:jit
      the same model eager and compiled; inputs are made at random
  outvote check arch.json --weights arch.weights.h5 --data val.npz
      an architecture and its weights
  outvote check model.keras --targets tensorflow,jax,patched --config outvote.toml
      a patched library ([targets.patched] with a setup script) against released ones
  outvote check model.onnx --dim batch=4
      an ONNX graph on ONNX Runtime, OpenVINO, OpenCV and the reference (docs/onnx.md)
  outvote check model.onnx --twins simplified,fp16,int8
      the same model as tools have transformed it: where do they spoil it?
  outvote check model.keras --targets numpy --oracle metamorphic
      one target held against itself: batches, masks, formats, types, saved and loaded
  outvote check model.keras --train --optimizer adamw --steps 3
      loss, gradients of every layer, and three steps of training (docs/training.md)
  outvote check model.keras --targets tensorflow,jax,torch --cluster auto
      each target on the node of a Ray cluster that has room for it (docs/cluster.md)
  outvote check model.keras --known known.toml --fail-on bug
      in CI: exit 1 only for bugs that known.toml does not list (docs/gate.md)
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "check",
        "run one trained model on several targets; localise what differs",
        "Run one trained model on several targets, compare every pair, and localise the faulty "
        "layer (CRADLE).",
        _EXAMPLES + exit_codes("consistent", "findings"),
    )
    parser.add_argument(
        "model", type=Path, help=".keras, .h5, .hdf5, .json with --weights, or .onnx"
    )
    parser.add_argument("--weights", type=Path, metavar="FILE", help="weights of a .json model")
    blocks.add_data(parser, ".npz with x (or x0, x1, ...) and optionally y; default: random inputs")
    blocks.add_targets(parser, "default: tensorflow, jax, torch, openvino, as far as installed")
    parser.add_argument(
        "--twins",
        type=values.names,
        default=[],
        metavar="T,...",
        help="the model transformed, too: fp16, bf16, int8, onnx, openvino, litert, saved_model, "
        "compiled; of .onnx also simplified, slim, opset, qdq, optimised",
    )
    blocks.add_out(parser)
    blocks.add_config(parser)
    blocks.add_find_links(parser)
    blocks.add_custom(parser)
    parser.add_argument("--allow-nan", action="store_true", help="accept NaN and infinity in x")
    parser.add_argument("--allow-empty", action="store_true", help="accept a batch of no inputs")
    parser.add_argument(
        "--every-layer", action="store_true", help="compare hidden layers even if outputs agree"
    )
    blocks.add_oracle(parser)
    blocks.add_lesson(parser, "compare loss, gradients and steps of training, too")
    blocks.add_count(parser)
    parser.add_argument(
        "--dim",
        type=values.dimension,
        action="append",
        default=[],
        metavar="NAME=N",
        help="size of a free dimension of an .onnx model; may be repeated",
    )
    blocks.add_batch_size(parser, 32)
    blocks.add_seed(parser)
    blocks.add_jobs(parser)
    blocks.add_cluster(parser, "spread targets over the nodes of a Ray cluster (docs/cluster.md)")
    blocks.add_quiet(parser)
    blocks.add_known(parser)
    blocks.add_fail_on(parser)
    _add_metrics(parser)
    blocks.add_verdict(parser)
    blocks.add_limits(parser)


def _add_metrics(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what counts as inconsistent (CRADLE's defaults)")
    group.add_argument(
        "--metric",
        type=values.names,
        metavar="M,...",
        help=f"{blocks.plugins('judge/metrics')}; default: all that apply",
    )
    group.add_argument(
        "--k", type=values.positive, default=5, help="top-k of D_CLASS (%(default)s)"
    )
    group.add_argument(
        "--class-threshold",
        type=values.number,
        default=8.0,
        metavar="T_C",
        help="D_CLASS that counts (%(default)s)",
    )
    blocks.add_mad_threshold(group, 0.2)
    group.add_argument(
        "--p",
        type=values.percent,
        default=0.0,
        help="percent of inputs that must reach the threshold",
    )
    blocks.add_tolerance(group, "relative distance that needs no explanation (1e-5 for float32)")
    group.add_argument(
        "--noise-factor",
        type=values.number,
        metavar="N",
        default=10.0,
        help="multiples of the noise floor that count as rounding (%(default)s)",
    )


def job_of(options: argparse.Namespace) -> Job:
    """What the options ask for."""
    from outvote.commands.check.job import Job
    from outvote.core.dialect import dialect_of
    from outvote.judge.compare import METRICS, Settings
    from outvote.targets.choose import choose_for, known_targets, with_twins

    metrics = tuple(options.metric or METRICS)
    for name in metrics:
        if name not in METRICS:
            raise UsageError(f"--metric {name!r} is unknown; choose from {', '.join(METRICS)}")
    custom = blocks.custom_of(options)
    config = blocks.config_of(options)
    gate = blocks.gate_of(options, config.folder)
    wing = dialect_of(options.model)
    fewest = 1 if options.oracle else 2
    targets = choose_for(wing, options.targets, config, fewest)
    return Job(
        model=options.model,
        targets=tuple(with_twins(targets, options.twins, known_targets(config, wing))),
        weights=options.weights,
        data=options.data,
        settings=Settings(
            metrics=metrics,
            k=options.k,
            class_threshold=options.class_threshold,
            mad_threshold=options.mad_threshold,
            p=options.p,
            tolerance=options.tolerance,
            noise_factor=options.noise_factor,
        ),
        limits=blocks.limits_of(options),
        custom=custom,
        allow_code=options.allow_code,
        allow_nan=options.allow_nan,
        allow_empty=options.allow_empty,
        count=options.count,
        dims=dict(options.dim),
        batch_size=options.batch_size,
        seed=options.seed,
        jobs=options.jobs,
        cluster=blocks.cluster_of(options),
        links=tuple(options.find_links),
        every_layer=options.every_layer,
        oracle=options.oracle or "",
        lesson=blocks.lesson_of(options, wing),
        minimise=options.minimise,
        confirm=options.confirm,
        out=options.out,
        gate=gate,
    )
