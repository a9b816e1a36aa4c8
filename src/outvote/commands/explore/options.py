"""`outvote explore`: inputs on which models that should agree do not."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks, values
from outvote.commands.codes import exit_codes
from outvote.core.errors import UsageError

if TYPE_CHECKING:
    from outvote.commands.explore.job import BetweenTargets
    from outvote.core.target import Target
    from outvote.explore.job import ExploreJob, Retraining

PLACE = 50
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
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "explore",
        "search for inputs on which models that should agree do not",
        "Climb from unlabelled seeds, by gradients, to realistic inputs on which the models "
        "differ, and cover their neurons on the way (DeepXplore).",
        _EXAMPLES + exit_codes("nothing found", "differences found"),
    )
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL", help="two or more models")
    blocks.add_data(parser, ".npz with x: the seeds", required=True)
    blocks.add_targets(parser, "one model: inputs on which these implementations of it differ most")
    parser.add_argument(
        "--confirm-on",
        metavar="NAME",
        help="another target on which every find must split the models too, or `none`; default: "
        "the first installed of torch, jax, tensorflow that does not search",
    )
    blocks.add_exploration(parser)
    blocks.add_seed(parser, "all random choices")
    blocks.add_known(parser)
    _add_search(parser)
    _add_answers(parser)
    _add_changes(parser)
    _add_retraining(parser)


def _add_search(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the search (DeepXplore's defaults for each constraint)")
    group.add_argument(
        "--lambda1",
        type=values.number,
        metavar="L",
        help="weight of the model that shall leave the rest",
    )
    group.add_argument("--lambda2", type=values.number, metavar="L", help="weight of new neurons")
    blocks.add_step(group)
    blocks.add_threshold(group, 0.0)
    blocks.add_iterations(group)
    blocks.add_until_coverage(
        group, "go round the seeds until this part of the neurons is covered, or none is added"
    )
    group.add_argument(
        "--no-baselines", action="store_true", help="no comparison with random and FGSM inputs"
    )


def _add_answers(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("when answers differ")
    group.add_argument(
        "--answers", choices=("classes", "values"), help="default: values for a single output"
    )
    blocks.add_tolerance(group, "values that are farther apart differ")
    group.add_argument(
        "--bins",
        type=values.numbers,
        default=(),
        metavar="E,...",
        help="values in different bins differ; the edges, e.g. -0.1,0.1 for left, straight, right",
    )


def _add_changes(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what may change")
    blocks.add_constraint(group, "light")
    group.add_argument(
        "--range",
        type=values.low_high,
        metavar="LOW,HIGH",
        help="legal values; default: from the seeds",
    )
    group.add_argument(
        "--rectangle",
        type=values.rectangle,
        metavar="HxW",
        help="size for occlusion and blackout",
    )
    group.add_argument(
        "--features", type=Path, metavar="FILE.csv", help="what each feature of a table may do"
    )
    group.add_argument(
        "--groups",
        type=values.names,
        default=[],
        metavar="G,...",
        help="of features that may change",
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
    blocks.add_epochs(group, "of retraining (%(default)s)", 5)
    group.add_argument(
        "--add",
        type=values.positive,
        default=100,
        metavar="N",
        help="finds to train with; the others measure what was learnt (%(default)s)",
    )


def job_of(options: argparse.Namespace) -> ExploreJob | BetweenTargets:
    """What the options ask for: to hold models, or targets of one, against each other."""
    if options.targets is None:
        if options.known is not None:
            raise UsageError(
                f"--known {options.known} lists findings about targets; give --targets, or leave "
                "it out: differences between models have no fingerprint"
            )
        return _search_of(options)
    from outvote.commands.explore.job import BetweenTargets
    from outvote.targets.choose import choose

    return BetweenTargets(
        search=_search_of(options),
        targets=tuple(choose(options.targets, blocks.known_of(options))),
        out=options.out,
        gate=blocks.gate_of(options, blocks.config_of(options).folder),
    )


def _search_of(options: argparse.Namespace) -> ExploreJob:
    from outvote.explore.job import ExploreJob

    shared = blocks.exploration_of(options)
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
        seed=options.seed,
        baselines=not options.no_baselines,
        retraining=_retraining(options),
        confirm=_confirmer(options, shared["target"]),
        **shared,
    )


def _confirmer(options: argparse.Namespace, searching: Target) -> Target | None:
    """The target on which finds are confirmed. Between those of --targets, `check` confirms."""
    from outvote.explore.roles import confirming_target

    if options.targets is not None:
        return None
    return confirming_target(options.confirm_on, searching, blocks.known_of(options))


def _retraining(options: argparse.Namespace) -> Retraining | None:
    from outvote.explore.job import Retraining

    if (options.retrain is None) != (options.test is None):
        raise UsageError("--retrain and --test go together: one trains, the other measures")
    if options.retrain is None:
        return None
    return Retraining(options.retrain, options.test, options.epochs, options.add)
