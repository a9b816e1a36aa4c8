"""`outvote zoo`: seed models by name, to check, to train and to fuzz."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from outvote.commands.options import CONSISTENT, INTERRUPTED, RAW, positive, seed

_EXAMPLES = """\
examples:
  outvote zoo list
      the models by name, with their sizes
  outvote zoo build lenet5 resnet20 --out zoo
      random weights and inputs that fit: zoo/lenet5.keras, zoo/lenet5.npz, ...
  outvote zoo train lenet5 --epochs 3
      on scikit-learn's digits
  outvote zoo train alexnet resnet20 --data keras:cifar10 --target jax
      on data that Keras downloads
  outvote check zoo/lenet5.keras --data zoo/lenet5.npz
      what to do with them
"""
_NAMES = "models of `outvote zoo list`, or the groups lemon, audee, tiny, all"


def add(commands: Any) -> None:
    """Add the command to the parser."""
    zoo = commands.add_parser(
        "zoo",
        help="build or train the seed models of the papers, by name",
        description="The seed models of LEMON and AUDEE, and some of ours: list, build or train "
        "them.",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    jobs = zoo.add_subparsers(title="jobs", metavar="JOB", required=True)
    listing = jobs.add_parser("list", help="list the models", description="List the models.")
    listing.set_defaults(action=_list)
    build = _job(jobs, "build", "write models with random weights, and inputs that fit")
    build.set_defaults(action=_build)
    train = _job(jobs, "train", "train models, in seconds to minutes")
    train.add_argument(
        "--data",
        metavar="FILE",
        help=".npz with x and y, or keras:NAME for one of keras.datasets; default: scikit-learn's "
        "digits, or what is generated for the model",
    )
    train.add_argument("--epochs", type=positive, metavar="N", help="default: by model, 2 to 5")
    train.add_argument(
        "--count", type=positive, metavar="N", help="samples at most; by model, 400 or 10000"
    )
    train.set_defaults(action=_train)


def _job(jobs: Any, name: str, text: str) -> argparse.ArgumentParser:
    job: argparse.ArgumentParser = jobs.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}.", formatter_class=RAW
    )
    job.add_argument("names", nargs="+", metavar="NAME", help=_NAMES)
    job.add_argument(
        "--out", type=Path, default=Path("zoo"), metavar="DIR", help="default: %(default)s"
    )
    job.add_argument("--seed", type=seed, default=0, help="for weights and samples (%(default)s)")
    job.add_argument(
        "--size", type=positive, metavar="N", help="side of images, length of sequences"
    )
    job.add_argument("--target", metavar="T", help="tensorflow, jax or torch; default: the first")
    job.add_argument("--quiet", action="store_true", help="no progress")
    return job


def _list(options: argparse.Namespace) -> int:
    from rich.table import Table

    from outvote.commands.terminal import results
    from outvote.core.dialect import zoos

    table = Table(title="Zoo", title_justify="left")
    for heading in ("model", "papers", "input", "layers", "weights", "data"):
        table.add_column(heading, no_wrap=heading == "model")
    for entry in [entry for zoo in zoos() for entry in zoo.entries()]:
        table.add_row(
            entry.name,
            ", ".join(entry.papers) or "ours",
            "x".join(map(str, entry.shape)),
            str(entry.layers),
            f"{entry.weights:,}",
            entry.data,
        )
    results().print(table)
    return CONSISTENT


def _build(options: argparse.Namespace) -> int:
    def one(bench: Any, entry: Any) -> str:
        made = _workshop(options).build(bench, entry, options.seed)
        return f"{_figures(made)}\n    outvote check {made.model} --data {made.data}"

    return _each(options, _entries(options), one)


def _train(options: argparse.Namespace) -> int:
    entries = _entries(options)
    work = _workshop(options)
    given = work.source_of(options.data, entries)

    def one(bench: Any, entry: Any) -> str:
        done = work.train(bench, entry, given, options.epochs, options.count, options.seed)
        form = "{:.1%} right" if done.is_classifier else "mean error {:.3g}"
        return (
            f"{_figures(done.made)}\n    {form.format(done.score)} on {done.tested_on} test samples"
            f" (one answer to all: {form.format(done.guess)}), trained on {done.trained_on} of "
            f"{done.source}, epochs: {done.epochs}\n"
            f"    outvote check {done.made.model} --data {done.made.data}"
        )

    return _each(options, entries, one)


def _figures(made: Any) -> str:
    return f"{made.name}: {made.layers} layers, {made.weights:,} weights, {made.seconds:.1f} s"


def _entries(options: argparse.Namespace) -> list[Any]:
    from outvote.core.dialect import zoo_of

    found = zoo_of(options.names[0]).entries(options.names)
    return [entry.sized(options.size) for entry in found]


def _workshop(options: argparse.Namespace) -> Any:
    from outvote.core.dialect import zoo_of

    return zoo_of(options.names[0]).workshop()


def _each(options: argparse.Namespace, entries: list[Any], one: Callable[[Any, Any], str]) -> int:
    """One model after the other, told of at once: whoever stops early keeps what is finished."""
    from outvote.commands.terminal import Terminal

    terminal, work = Terminal(options.quiet), _workshop(options)
    with work.bench(options.out, work.trainer(options.target), terminal.watch) as ready:
        for done, entry in enumerate(entries):
            try:
                terminal.say(one(ready, entry))
            except KeyboardInterrupt:
                finished = f"{done} of {len(entries)} models are finished and kept"
                sys.stderr.write(f"outvote: stopped; {finished}\n")
                return INTERRUPTED
    return CONSISTENT
