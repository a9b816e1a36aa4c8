"""`outvote fuzz`: breed mutants of models on which targets differ more and more."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.commands import blocks, values
from outvote.commands.codes import exit_codes
from outvote.core.errors import UsageError

if TYPE_CHECKING:
    from outvote.campaign.job import Budget
    from outvote.commands.fuzz.job import NewCampaign, Replay, Resumption
    from outvote.config import Config
    from outvote.core.dialect import Dialect
    from outvote.core.target import Target
    from outvote.search.genetic import GeneticSettings

PLACE = 20
_EXAMPLES = """\
examples:
  outvote fuzz lenet5 --budget 500
      500 mutants of a model of the zoo (`outvote zoo list`) on tensorflow, jax and torch
  outvote fuzz model.keras --data val.npz --budget 20m --targets tensorflow,jax,torch
      a model of your own, for twenty minutes
  outvote fuzz lenet5 transformer --strategy random --seed 7 --out baseline
      several seeds, without guidance, repeatable
  outvote fuzz lenet5 --budget 10m --compare random
      the same budget again with the other strategy; the report holds both
  outvote fuzz lenet5 --strategy audee --search gradient
      other parameters, illegal values, and inputs led to where targets differ
  outvote fuzz --strategy layers --targets tensorflow,jax,torch,numpy,openvino --budget 20m
      single layers of every kind, alone: the quickest way to what one layer shows
  outvote fuzz onnx:lenet5 onnx:Conv --targets onnxruntime,opencv,onnx-reference
      ONNX: a model of the zoo exported, and ONNX' node tests of an operator, with their answers
  outvote fuzz --strategy layers --targets torch --oracle metamorphic --budget 10m
      one library alone, held against itself
  outvote fuzz lenet5 --budget 2h --cluster auto
      on all machines of the Ray cluster that this one belongs to; local:4: four crews here
  outvote fuzz --resume baseline --budget 2000
      go on with a campaign that was stopped, or wants more
  outvote fuzz lenet5 --budget 20m --known known.toml --fail-on bug
      in CI: exit 1 only for bugs that known.toml does not list (docs/gate.md)
"""


_LEAST_SEED = "tiny-number"  # where layers are tried on tensors of their own: a place to begin


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = blocks.new_parser(
        commands,
        "fuzz",
        "breed mutant models and find on which targets differ, fail or turn NaN",
        "Breed mutants of seed models, run them on several targets, and look into every "
        "difference until its layer is found (LEMON, AUDEE).",
        _EXAMPLES + exit_codes("nothing found", "findings"),
    )
    parser.add_argument(
        "seeds",
        nargs="*",
        metavar="SEED",
        help="model file, or name or group in the zoo; `--strategy layers` needs none",
    )
    blocks.add_data(
        parser,
        ".npz for a seed that is a file; once per such seed; default: random inputs",
        several=True,
    )
    blocks.add_targets(parser, "default: tensorflow, jax, torch, as far as installed")
    parser.add_argument(
        "--strategy", default="mixed", help=f"{blocks.plugins('search')} (%(default)s)"
    )
    parser.add_argument(
        "--compare",
        metavar="STRATEGY",
        help="then spend the same budget on another strategy, and hold the two against each other",
    )
    blocks.add_budget(parser, "mutants (500) or time (20m); default: 500")
    blocks.add_until_coverage(
        parser,
        "stop when this part of the layer kinds was drawn (80%%); with --budget, whichever is "
        "first",
    )
    blocks.add_out(parser, "outvote-fuzz")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="go on with a campaign")
    parser.add_argument(
        "--replay",
        type=Path,
        metavar="DIR",
        help="go through a campaign again, in the order in which its crews were done",
    )
    blocks.add_seed(parser, "the random choices")
    blocks.add_jobs(parser)
    blocks.add_cluster(
        parser,
        "crews that run it, with Ray: N on this machine, or as many as a running cluster has room "
        "for (docs/cluster.md)",
    )
    parser.add_argument(
        "--inputs",
        type=values.whole,
        default=32,
        metavar="N",
        help="per seed (%(default)s); 0: layers get a batch of no instances (--strategy layers)",
    )
    parser.add_argument(
        "--rules", type=values.names, metavar="LA,GF,...", help="default: all of the strategy"
    )
    blocks.add_oracle(
        parser,
        ("metamorphic", "gradients"),
        "also hold every target against itself (one is enough), or compare training",
    )
    blocks.add_mad_threshold(parser, 0.4)
    parser.add_argument(
        "--breed-known",
        action="store_true",
        help="also breed from mutants that show a known finding, as LEMON does",
    )
    parser.add_argument(
        "--no-line-coverage",
        action="store_true",
        help="do not watch which lines of Keras' own Python mutants reach",
    )
    blocks.add_find_links(parser)
    blocks.add_config(parser)
    blocks.add_quiet(parser)
    blocks.add_known(parser)
    blocks.add_fail_on(parser)
    blocks.add_verdict(parser)
    _add_search(parser)
    blocks.add_limits(parser, 60, 3, resumed=True)


def _add_search(parser: argparse.ArgumentParser) -> None:
    """AUDEE's Algorithm 1. The paper gives no numbers; these are ours."""
    group = parser.add_argument_group("search for inputs and weights (AUDEE)")
    group.add_argument(
        "--search",
        choices=("genetic", "gradient"),
        default="genetic",
        help="how inputs are led to where targets differ (%(default)s)",
    )
    group.add_argument(
        "--population", type=values.positive, default=10, metavar="N", help="n (%(default)s)"
    )
    group.add_argument(
        "--elite",
        type=values.positive,
        default=3,
        metavar="N",
        help="m, those that stay (%(default)s)",
    )
    group.add_argument(
        "--crossover", type=values.share, default=0.5, metavar="R", help="r1 (%(default)s)"
    )
    group.add_argument(
        "--mutation", type=values.share, default=0.8, metavar="R", help="r2 (%(default)s)"
    )
    group.add_argument(
        "--generations", type=values.positive, default=5, metavar="N", help="maxIte (%(default)s)"
    )


def job_of(options: argparse.Namespace) -> NewCampaign | Resumption | Replay:
    """What the options ask for: a campaign, more of one, or one again."""
    if options.replay is not None:
        return _replay(options)
    return _campaign(options) if options.resume is None else _resumption(options)


def _replay(options: argparse.Namespace) -> Replay:
    from outvote.commands.fuzz.job import Replay

    given = [*options.seeds, *(str(name) for name in (options.resume, options.compare) if name)]
    if given:
        raise UsageError(
            f"--replay goes through the campaign in {options.replay} again; leave out {given[0]!r}"
        )
    config = blocks.config_of(options)
    return Replay(
        of=options.replay,
        out=options.out,
        config=config,
        links=tuple(options.find_links),
        gate=blocks.gate_of(options, config.folder),
        cluster=blocks.cluster_of(options),
    )


def _resumption(options: argparse.Namespace) -> Resumption:
    from outvote.commands.fuzz.job import Resumption

    if options.seeds:
        raise UsageError(
            f"--resume goes on with the seeds of {options.resume}; leave out {options.seeds[0]!r}"
        )
    if options.compare is not None:
        raise UsageError(
            f"--compare {options.compare} is for new campaigns; to compare stored ones: "
            f"outvote report {options.resume} OTHER"
        )
    config, budget = blocks.config_of(options), _budget(options)
    return Resumption(
        out=options.resume,
        config=config,
        changes={**({"budget": budget} if budget else {}), **_limits(options)},
        links=tuple(options.find_links),
        gate=blocks.gate_of(options, config.folder),
        cluster=blocks.cluster_of(options),
    )


def _campaign(options: argparse.Namespace) -> NewCampaign:
    from outvote.campaign.job import Budget, FuzzJob
    from outvote.commands.fuzz.job import NewCampaign
    from outvote.core.dialect import dialect_of

    if options.inputs == 0 and options.strategy != "layers":
        raise UsageError(f"--inputs 0 is for --strategy layers; {options.strategy} compares values")
    config = blocks.config_of(options)
    gate = blocks.gate_of(options, config.folder)
    free = _free_dialect(options, config)
    seeds = () if free else blocks.seeds_of(_seed_names(options), options.data or [])
    wing = free or dialect_of(seeds[0].model)
    job = FuzzJob(
        seeds=seeds,
        targets=tuple(_targets(options, wing, config)),
        strategy=options.strategy,
        budget=_budget(options) or Budget(mutants=500),
        seed=options.seed,
        inputs=options.inputs,
        mad_threshold=options.mad_threshold,
        breed_known=options.breed_known,
        line_coverage=not options.no_line_coverage,
        rules=_rules(options, wing.name),
        oracle=options.oracle or "",
        minimise=options.minimise,
        confirm=options.confirm,
        search=options.search,
        genetic=_genetic(options),
        **_limits(options),
    )
    return NewCampaign(
        job=job,
        out=options.out,
        rival=options.compare,
        links=tuple(options.find_links),
        gate=gate,
        cluster=blocks.cluster_of(options),
    )


def _needs_no_seed(options: argparse.Namespace) -> bool:
    """Whether layers are tried on tensors of their own alone: nobody asked for anything else."""
    asked = options.seeds or options.rules or options.inputs == 0
    return options.strategy == "layers" and not asked


def _rules(options: argparse.Namespace, spoken: str) -> tuple[str, ...]:
    from outvote.mutate.registry import all_rules, brings_tensors

    if not _needs_no_seed(options):
        return tuple(options.rules or ())
    return tuple(name for name, rule in all_rules(spoken).items() if brings_tensors(rule))


def _budget(options: argparse.Namespace) -> Budget | None:
    from outvote.campaign.job import Budget

    if options.budget is None and options.until_coverage is None:
        return None
    what, amount = options.budget or ("", 0)
    return Budget(
        mutants=int(amount) if what == "mutants" else None,
        seconds=amount if what == "seconds" else None,
        coverage=options.until_coverage,
    )


def _limits(options: argparse.Namespace) -> dict[str, Any]:
    """What was said of workers; a campaign that is resumed keeps the rest as it was."""
    from outvote.run.process import Limits

    said: dict[str, Any] = {
        "jobs": options.jobs,
        "memory_limit": options.memory and int(options.memory * 2**30),
        "limits": options.timeout and Limits(silence_seconds=options.timeout),
    }
    return {name: value for name, value in said.items() if value is not None}


def _genetic(options: argparse.Namespace) -> GeneticSettings:
    from outvote.search.genetic import GeneticSettings

    if options.elite >= options.population:
        raise UsageError(
            f"--elite must be below --population, or nothing is bred; "
            f"received {options.elite} of {options.population}"
        )
    return GeneticSettings(
        options.population, options.elite, options.crossover, options.mutation, options.generations
    )


def _free_dialect(options: argparse.Namespace, config: Config) -> Dialect | None:
    """Whose cases are drawn in bulk: no seed is named, and all targets speak one that has such."""
    from outvote.core.dialect import dialect
    from outvote.targets.choose import choose, known_targets

    if options.seeds or options.strategy != "layers" or not options.targets:
        return None
    spoken = {target.dialect for target in choose(options.targets, known_targets(config))}
    found = [dialect(name) for name in spoken]
    return found[0] if len(found) == 1 and found[0].has("bulk") else None


def _targets(options: argparse.Namespace, wing: Dialect, config: Config) -> list[Target]:
    """As named; else those that are quick: a slow one takes most of the time, for who asks."""
    from outvote.targets.choose import choose, known_targets, missing_packages

    known = known_targets(config, wing)
    quick = [n for n in wing.targets.SEARCHED if not missing_packages(known[n])]
    default = quick if len(quick) > 1 else wing.targets.DEFAULT
    return choose(options.targets, known, default, 1 if options.oracle else 2)


def _seed_names(options: argparse.Namespace) -> list[str]:
    """Seeds as given, groups of the zoo as their members; on branches, tensors of every rank."""
    from outvote.core.dialect import zoo_of

    given = options.seeds
    if options.strategy == "layers" and not given:
        given = [_LEAST_SEED] if _needs_no_seed(options) else ["tiny"]
    return [
        member
        for name in given
        for member in ((name,) if blocks.is_file(name) else zoo_of(name).members_of(name))
    ]
