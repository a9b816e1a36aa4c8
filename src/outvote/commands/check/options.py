"""`outvote check`: one trained model on several targets."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.gate_options import add_fail_on, add_known, exit_code, gate_of
from outvote.commands.options import (
    RAW,
    above_zero,
    add_find_links,
    add_verdict_options,
    dimension,
    names,
    number,
    percent,
    positive,
    target_names,
)
from outvote.core.errors import UsageError

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
  outvote check model.keras --known known.toml --fail-on bug
      in CI: exit 1 only for bugs that known.toml does not list (docs/gate.md)
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    check = commands.add_parser(
        "check",
        help="run one trained model on several targets; localise what differs",
        description="Run one trained model on several targets, compare every pair, and localise "
        "the faulty layer (CRADLE).",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    _add_options(check)
    check.set_defaults(action=_check)


def _add_options(check: argparse.ArgumentParser) -> None:
    check.add_argument(
        "model", type=Path, help=".keras, .h5, .hdf5, .json with --weights, or .onnx"
    )
    check.add_argument("--weights", type=Path, metavar="FILE", help="weights of a .json model")
    check.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        help=".npz with x (or x0, x1, ...) and optionally y; default: random inputs",
    )
    check.add_argument(
        "--targets",
        type=target_names,
        metavar="A,B,...",
        help="default: tensorflow, jax, torch, openvino, as far as installed",
    )
    check.add_argument(
        "--out", type=Path, default=Path("outvote-out"), metavar="DIR", help="default: %(default)s"
    )
    check.add_argument("--config", type=Path, metavar="FILE", help="default: ./outvote.toml")
    add_find_links(check)
    check.add_argument("--custom", type=Path, metavar="FILE.py", help="defines custom layers")
    check.add_argument(
        "--allow-code", action="store_true", help="run Lambda code in the file (only if trusted)"
    )
    check.add_argument("--allow-nan", action="store_true", help="accept NaN and infinity in x")
    check.add_argument("--allow-empty", action="store_true", help="accept a batch of no inputs")
    check.add_argument(
        "--every-layer", action="store_true", help="compare hidden layers even if outputs agree"
    )
    check.add_argument("--count", type=positive, metavar="N", help="use the first N inputs")
    check.add_argument(
        "--dim",
        type=dimension,
        action="append",
        default=[],
        metavar="NAME=N",
        help="size of a free dimension of an .onnx model; may be repeated",
    )
    check.add_argument("--batch-size", type=positive, default=32, metavar="N", help="%(default)s")
    check.add_argument("--seed", type=int, default=0, help="for random inputs")
    check.add_argument("--jobs", type=positive, metavar="N", help="targets at work at once")
    check.add_argument("--quiet", action="store_true", help="no progress")

    add_known(check)
    add_fail_on(check)

    rules = check.add_argument_group("what counts as inconsistent (CRADLE's defaults)")
    rules.add_argument(
        "--metric",
        type=names,
        metavar="M,...",
        help="class, mad, relative; default: all that apply",
    )
    rules.add_argument("--k", type=positive, default=5, help="top-k of D_CLASS (%(default)s)")
    rules.add_argument(
        "--class-threshold",
        type=number,
        default=8.0,
        metavar="T_C",
        help="D_CLASS that counts (%(default)s)",
    )
    rules.add_argument(
        "--mad-threshold",
        type=number,
        default=0.2,
        metavar="T_M",
        help="D_MAD that counts (%(default)s)",
    )
    rules.add_argument(
        "--p", type=percent, default=0.0, help="percent of inputs that must reach the threshold"
    )
    rules.add_argument(
        "--tolerance",
        type=number,
        metavar="T",
        help="relative distance that needs no explanation (1e-5 for float32)",
    )
    rules.add_argument(
        "--noise-factor",
        type=number,
        metavar="N",
        default=10.0,
        help="multiples of the noise floor that count as rounding (%(default)s)",
    )

    add_verdict_options(check)
    limits = check.add_argument_group("limits of a worker")
    limits.add_argument(
        "--timeout",
        type=above_zero,
        default=300.0,
        metavar="S",
        help="without progress (%(default)s)",
    )
    limits.add_argument("--memory", type=above_zero, metavar="GIB", help="default: no limit")


def _check(options: argparse.Namespace) -> int:
    from outvote.commands.check.job import Job
    from outvote.commands.check.run import run_job
    from outvote.commands.terminal import Terminal
    from outvote.config import load_config
    from outvote.core.dialect import dialect_of
    from outvote.judge.compare import METRICS, Settings
    from outvote.run.process import Limits
    from outvote.targets.choose import choose_for

    metrics = tuple(options.metric or METRICS)
    for name in metrics:
        if name not in METRICS:
            raise UsageError(f"--metric {name!r} is unknown; choose from {', '.join(METRICS)}")
    for path in filter(None, (options.custom,)):
        if not path.is_file():
            raise UsageError(f"the file {path} given with --custom does not exist")
    config = load_config(options.config)
    gate = gate_of(options, config.folder)
    targets = choose_for(dialect_of(options.model), options.targets, config.targets, config.folder)
    memory = int(options.memory * 2**30) if options.memory is not None else None
    job = Job(
        model=options.model,
        targets=tuple(targets),
        weights=options.weights,
        data=options.data,
        settings=Settings(
            metrics,
            options.k,
            options.class_threshold,
            options.mad_threshold,
            options.p,
            options.tolerance,
            options.noise_factor,
        ),
        limits=Limits(silence_seconds=options.timeout, memory_bytes=memory),
        custom=options.custom,
        allow_code=options.allow_code,
        allow_nan=options.allow_nan,
        allow_empty=options.allow_empty,
        count=options.count,
        batch_size=options.batch_size,
        seed=options.seed,
        dims=dict(options.dim),
        jobs=options.jobs,
        links=tuple(options.find_links),
        every_layer=options.every_layer,
        minimise=options.minimise,
        confirm=options.confirm,
    )
    terminal = Terminal(options.quiet)
    result = run_job(job, options.out, terminal.watch, terminal.announce, gate)
    terminal.show_check(result.data, options.out)
    return exit_code(result.data)
