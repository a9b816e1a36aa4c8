"""`outvote zoo`: seed models by name, to check, to train and to fuzz."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks, values
from outvote.commands.codes import exit_codes

if TYPE_CHECKING:
    from outvote.commands.zoo.job import BuildJob, ListJob, TrainJob

PLACE = 120
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
    parser = blocks.new_parser(
        commands,
        "zoo",
        "build or train the seed models of the papers, by name",
        "The seed models of LEMON and AUDEE, and some of ours: list, build or train them.",
        _EXAMPLES + exit_codes("done"),
    )
    jobs = parser.add_subparsers(title="jobs", metavar="JOB", required=True, dest="job")
    jobs.add_parser("list", help="list the models", description="List the models.")
    _add_job(jobs, "build", "write models with random weights, and inputs that fit")
    train = _add_job(jobs, "train", "train models, in seconds to minutes")
    blocks.add_data(
        train,
        ".npz with x and y, or keras:NAME for one of keras.datasets; default: scikit-learn's "
        "digits, or what is generated for the model",
        kind=str,
    )
    blocks.add_epochs(train, "default: by model, 2 to 5")
    blocks.add_count(train, "samples at most; by model, 400 or 10000")


def _add_job(jobs: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser = blocks.new_parser(jobs, name, text, f"{text[0].upper()}{text[1:]}.", "")
    parser.add_argument("names", nargs="+", metavar="NAME", help=_NAMES)
    blocks.add_out(parser, "zoo")
    blocks.add_seed(parser, "weights and samples")
    parser.add_argument(
        "--size", type=values.positive, metavar="N", help="side of images, length of sequences"
    )
    blocks.add_target(parser, "tensorflow, jax or torch; default: the first")
    blocks.add_quiet(parser)
    return parser


def job_of(options: argparse.Namespace) -> ListJob | BuildJob | TrainJob:
    """What the options ask for."""
    from outvote.commands.zoo.job import BuildJob, ListJob, TrainJob

    if options.job == "list":
        return ListJob()
    build = BuildJob(tuple(options.names), options.out, options.seed, options.size, options.target)
    if options.job == "build":
        return build
    return TrainJob(build, options.data, options.epochs, options.count)
