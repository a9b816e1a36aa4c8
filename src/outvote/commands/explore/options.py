"""`outvote explore`: inputs on which models that should agree do not."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.blocks import (
    add_common,
    chosen_targets,
    common,
    confirming,
    low_high,
    numbers,
    rectangle,
    share,
)
from outvote.commands.gate_options import add_known, exit_code, gate_of
from outvote.commands.options import (
    CONSISTENT,
    FINDINGS,
    INTERRUPTED,
    RAW,
    above_zero,
    names,
    number,
    positive,
)
from outvote.core.errors import UsageError

_EXAMPLES = """\
examples:
  outvote explore a.keras b.keras c.keras --data seeds.npz
      three classifiers; seeds.npz holds pictures as x; other lighting that splits the models
  outvote explore a.keras b.keras --data seeds.npz --constraint occlusion --rectangle 10x10
      the same by one rectangle; --constraint FILE.py for a constraint of your own
  outvote explore left.keras right.keras --data frames.npz --bins -0.1,0.1
      steering angles, which differ when they are not in the same bin
  outvote explore a.keras b.keras --data pdf.npz --constraint integer --features features.csv
      tables of features that may only grow or shrink in whole steps
  outvote explore a.keras b.keras c.keras --data seeds.npz --retrain train.npz --test test.npz
      then train each model on with the finds, beside random and adversarial inputs
  outvote explore a.keras --targets tensorflow,torch --data seeds.npz
      inputs on which two implementations of one model differ most, judged as by `check`

exit codes: 0 nothing found, 1 differences found, 2 usage or set-up error, 130 stopped with Ctrl-C
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "explore",
        help="search for inputs on which models that should agree do not",
        description="Climb from unlabelled seeds, by gradients, to realistic inputs on which the "
        "models differ, and cover their neurons on the way (DeepXplore).",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL", help="two or more models")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="FILE", help=".npz with x: the seeds"
    )
    parser.add_argument(
        "--targets",
        type=names,
        metavar="A,B,...",
        help="one model: inputs on which these implementations of it differ most",
    )
    parser.add_argument(
        "--confirm",
        metavar="NAME",
        help="another target on which every find must split the models too, or `none`; default: "
        "the first installed of torch, jax, tensorflow that does not search",
    )
    add_common(parser)
    add_known(parser)
    _add_search(parser)
    _add_answers(parser)
    _add_constraint(parser)
    _add_retraining(parser)
    parser.set_defaults(action=_explore)


def _add_search(parser: argparse.ArgumentParser) -> None:
    search = parser.add_argument_group("the search (DeepXplore's defaults for each constraint)")
    search.add_argument(
        "--lambda1", type=number, metavar="L", help="weight of the model that shall leave the rest"
    )
    search.add_argument("--lambda2", type=number, metavar="L", help="weight of new neurons")
    search.add_argument(
        "--step", type=above_zero, metavar="S", help="for pictures in 255ths of the range"
    )
    search.add_argument(
        "--threshold",
        type=share,
        default=0.0,
        metavar="T",
        help="of an active neuron (%(default)s)",
    )
    search.add_argument(
        "--iterations", type=positive, default=20, metavar="N", help="for each seed (%(default)s)"
    )
    search.add_argument(
        "--until-coverage",
        type=share,
        metavar="P",
        help="go round the seeds until this share of neurons is covered, or none is added",
    )
    search.add_argument(
        "--no-baselines", action="store_true", help="no comparison with random and FGSM inputs"
    )


def _add_answers(parser: argparse.ArgumentParser) -> None:
    answers = parser.add_argument_group("when answers differ")
    answers.add_argument(
        "--answers", choices=("classes", "values"), help="default: values for a single output"
    )
    answers.add_argument(
        "--tolerance", type=number, metavar="T", help="values that are farther apart differ"
    )
    answers.add_argument(
        "--bins",
        type=numbers,
        default=(),
        metavar="E,...",
        help="values in different bins differ; the edges, e.g. -0.1,0.1 for left, straight, right",
    )


def _add_constraint(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what may change")
    group.add_argument(
        "--constraint",
        default="light",
        metavar="C",
        help="light, occlusion, blackout, add-only, integer, none, or FILE.py (%(default)s)",
    )
    group.add_argument(
        "--range", type=low_high, metavar="LOW,HIGH", help="legal values; default: from the seeds"
    )
    group.add_argument(
        "--rectangle", type=rectangle, metavar="HxW", help="size for occlusion and blackout"
    )
    group.add_argument(
        "--features", type=Path, metavar="FILE.csv", help="what each feature of a table may do"
    )
    group.add_argument(
        "--groups", type=names, default=[], metavar="G,...", help="of features that may change"
    )


def _add_retraining(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to do with the finds")
    group.add_argument(
        "--retrain",
        type=Path,
        metavar="FILE",
        help=".npz with x and y: train each model on, with the finds labelled by majority vote",
    )
    group.add_argument(
        "--test", type=Path, metavar="FILE", help=".npz with x and y: measures the accuracy"
    )
    group.add_argument(
        "--epochs", type=positive, default=5, metavar="N", help="of retraining (%(default)s)"
    )
    group.add_argument(
        "--add",
        type=positive,
        default=100,
        metavar="N",
        help="finds to train with; the others measure what was learnt (%(default)s)",
    )


def _retraining(options: argparse.Namespace) -> Any:
    from outvote.explore.job import Retraining

    if (options.retrain is None) != (options.test is None):
        raise UsageError("--retrain and --test go together: one trains, the other measures")
    if options.retrain is None:
        return None
    return Retraining(options.retrain, options.test, options.epochs, options.add)


def job_of(options: argparse.Namespace) -> Any:
    """The job that the options describe."""
    from outvote.explore.job import ExploreJob

    shared = common(options)
    return ExploreJob(
        models=tuple(options.models),
        data=options.data,
        constraint=options.constraint,
        lambda1=options.lambda1,
        lambda2=options.lambda2,
        step=options.step,
        threshold=options.threshold,
        iterations=options.iterations,
        until_coverage=options.until_coverage,
        answers=options.answers,
        tolerance=options.tolerance,
        edges=tuple(sorted(options.bins)),
        limits_of_range=options.range,
        rectangle=options.rectangle,
        features=options.features,
        groups=tuple(options.groups),
        baselines=not options.no_baselines,
        retraining=_retraining(options),
        confirm=confirming(options, shared["target"]),
        **shared,
    )


def _explore(options: argparse.Namespace) -> int:
    from outvote.commands.terminal import Terminal

    terminal = Terminal(options.quiet)
    if options.targets is None:
        if options.known is not None:
            raise UsageError(
                f"--known {options.known} lists findings about targets; give --targets, or leave "
                "it out: differences between models have no fingerprint"
            )
        from outvote.commands.explore.run import explore
        from outvote.commands.explore.show import show_explored

        result = explore(job_of(options), options.out, terminal.watch)
        show_explored(result, options.out)
    else:
        from outvote.commands.explore.between import explore_between
        from outvote.commands.explore.show import show_distance
        from outvote.config import load_config

        gate = gate_of(options, load_config(options.config).folder)
        targets = chosen_targets(options)
        result = explore_between(job_of(options), targets, options.out, terminal.watch, gate)
        terminal.show_check(result, options.out)
        show_distance(result)
        return exit_code(result)
    codes = {"consistent": CONSISTENT, "inconsistent": FINDINGS, "interrupted": INTERRUPTED}
    return codes[result["verdict"]]
