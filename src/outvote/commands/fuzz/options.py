"""`outvote fuzz`: breed mutants of models on which targets differ more and more."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.blocks import _is_file, seeds_of, share
from outvote.commands.gate_options import add_fail_on, add_known, exit_code, gate_of
from outvote.commands.options import (
    INTERRUPTED,
    RAW,
    above_zero,
    add_find_links,
    add_verdict_options,
    budget,
    count,
    names,
    number,
    positive,
    some_percent,
    target_names,
)
from outvote.core.errors import UsageError

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
      single layers of every kind on tiny seeds: the quickest way to what one layer shows
  outvote fuzz --resume baseline --budget 2000
      go on with a campaign that was stopped, or wants more
  outvote fuzz lenet5 --budget 20m --known known.toml --fail-on bug
      in CI: exit 1 only for bugs that known.toml does not list (docs/gate.md)
"""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    fuzz = commands.add_parser(
        "fuzz",
        help="breed mutant models and find on which targets differ, fail or turn NaN",
        description="Breed mutants of seed models, run them on several targets, and look into "
        "every difference until its layer is found (LEMON, AUDEE).",
        epilog=_EXAMPLES,
        formatter_class=RAW,
    )
    fuzz.add_argument(
        "seeds",
        nargs="*",
        metavar="SEED",
        help="model file, or name or group in the zoo; `--strategy layers` needs none",
    )
    fuzz.add_argument(
        "--data",
        type=Path,
        action="append",
        metavar="FILE",
        help=".npz for a seed that is a file; once per such seed; default: random inputs",
    )
    fuzz.add_argument(
        "--targets",
        type=target_names,
        metavar="A,B,...",
        help="default: tensorflow, jax, torch, as far as installed",
    )
    fuzz.add_argument(
        "--strategy", default="mixed", help="mixed, layers, lemon, audee or random (%(default)s)"
    )
    fuzz.add_argument(
        "--compare",
        metavar="STRATEGY",
        help="then spend the same budget on another strategy, and hold the two against each other",
    )
    fuzz.add_argument(
        "--budget", type=budget, metavar="N|TIME", help="mutants (500) or time (20m); default: 500"
    )
    fuzz.add_argument(
        "--until-coverage",
        type=some_percent,
        metavar="P",
        help="stop when P percent of the layer kinds were drawn; with --budget, whichever is first",
    )
    fuzz.add_argument(
        "--out", type=Path, default=Path("outvote-fuzz"), metavar="DIR", help="default: %(default)s"
    )
    fuzz.add_argument("--resume", type=Path, metavar="DIR", help="go on with a campaign")
    fuzz.add_argument("--seed", type=int, default=0, help="of the random choices (%(default)s)")
    fuzz.add_argument("--jobs", type=positive, metavar="N", help="targets at work at once")
    fuzz.add_argument(
        "--inputs",
        type=count,
        default=32,
        metavar="N",
        help="per seed (%(default)s); 0: layers get a batch of no instances (--strategy layers)",
    )
    fuzz.add_argument(
        "--rules", type=names, metavar="LA,GF,...", help="default: all of the strategy"
    )
    fuzz.add_argument(
        "--mad-threshold",
        type=number,
        default=0.4,
        metavar="T",
        help="D_MAD that counts as inconsistent (%(default)s)",
    )
    fuzz.add_argument(
        "--breed-known",
        action="store_true",
        help="also breed from mutants that show a known finding, as LEMON does",
    )
    add_find_links(fuzz)
    fuzz.add_argument("--config", type=Path, metavar="FILE", help="default: ./outvote.toml")
    fuzz.add_argument("--quiet", action="store_true", help="no progress")
    add_known(fuzz)
    add_fail_on(fuzz)
    add_verdict_options(fuzz)
    _add_search(fuzz)
    limits = fuzz.add_argument_group("limits of a worker")
    limits.add_argument(
        "--timeout",
        type=above_zero,
        metavar="S",
        help="without progress (60)",
    )
    limits.add_argument(
        "--memory",
        type=above_zero,
        metavar="GIB",
        help="replace a worker that holds more (3)",
    )
    fuzz.set_defaults(action=_fuzz)


def _add_search(fuzz: Any) -> None:
    """AUDEE's Algorithm 1. The paper gives no numbers; these are ours."""
    group = fuzz.add_argument_group("search for inputs and weights (AUDEE)")
    group.add_argument(
        "--search",
        choices=("genetic", "gradient"),
        default="genetic",
        help="how inputs are led to where targets differ (%(default)s)",
    )
    group.add_argument(
        "--population", type=positive, default=10, metavar="N", help="n (%(default)s)"
    )
    group.add_argument(
        "--elite", type=positive, default=3, metavar="N", help="m, those that stay (%(default)s)"
    )
    group.add_argument("--crossover", type=share, default=0.5, metavar="R", help="r1 (%(default)s)")
    group.add_argument("--mutation", type=share, default=0.8, metavar="R", help="r2 (%(default)s)")
    group.add_argument(
        "--generations", type=positive, default=5, metavar="N", help="maxIte (%(default)s)"
    )


def _genetic(options: argparse.Namespace) -> Any:
    from outvote.search.genetic import GeneticSettings

    if options.elite >= options.population:
        raise UsageError(
            f"--elite must be below --population, or nothing is bred; "
            f"received {options.elite} of {options.population}"
        )
    return GeneticSettings(
        options.population, options.elite, options.crossover, options.mutation, options.generations
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


def _fuzz(options: argparse.Namespace) -> int:
    from outvote.campaign.job import Budget, FuzzJob
    from outvote.commands.fuzz.run import require_rival, resume, start, start_rival
    from outvote.commands.fuzz.show import FuzzTerminal
    from outvote.commands.terminal import Terminal
    from outvote.config import load_config
    from outvote.targets.choose import known_targets
    from outvote.targets.environments.provide import provide

    config = load_config(options.config)
    gate = gate_of(options, config.folder)
    known = known_targets(config.targets, config.folder)
    wanted = None
    if options.budget is not None or options.until_coverage is not None:
        what, amount = options.budget or ("", 0)
        wanted = Budget(
            mutants=int(amount) if what == "mutants" else None,
            seconds=amount if what == "seconds" else None,
            coverage=options.until_coverage / 100 if options.until_coverage else None,
        )
    terminal = FuzzTerminal(options.quiet)

    def ready(targets: Any) -> Any:
        return provide(targets, options.find_links, Terminal(options.quiet).announce)

    if options.resume is not None:
        if options.seeds:
            raise UsageError(
                f"--resume goes on with the seeds of {options.resume}; "
                f"leave out {options.seeds[0]!r}"
            )
        if options.compare is not None:
            raise UsageError(
                f"--compare {options.compare} is for new campaigns; to compare stored ones: "
                f"outvote report {options.resume} OTHER"
            )
        out = options.resume
        with terminal.live() as watch:
            changes = {"budget": wanted} if wanted else {}
            result = resume(out, known, watch, {**changes, **_limits(options)}, ready, gate)
    else:
        out = options.out
        if options.inputs == 0 and options.strategy != "layers":
            raise UsageError(
                f"--inputs 0 is for --strategy layers; {options.strategy} compares values"
            )
        seeds = seeds_of(_seed_names(options), options.data or [])
        job = FuzzJob(
            seeds=seeds,
            targets=tuple(_targets(options, seeds[0].model, config)),
            strategy=options.strategy,
            budget=wanted or Budget(mutants=500),
            seed=options.seed,
            inputs=options.inputs,
            mad_threshold=options.mad_threshold,
            breed_known=options.breed_known,
            rules=tuple(options.rules or ()),
            minimise=options.minimise,
            confirm=options.confirm,
            search=options.search,
            genetic=_genetic(options),
            **_limits(options),
        )
        if options.compare is not None:
            require_rival(job, options.compare, out)
        with terminal.live() as watch:
            result = start(job, out, watch, ready, gate)
        if options.compare is not None and not result["interrupted"]:
            with terminal.live() as watch:
                result = start_rival(job, options.compare, out, watch, ready, gate)
    terminal.show(result, out)
    compared = result["comparison"] or {"campaigns": ()}
    if result["interrupted"] or any(c["interrupted"] for c in compared["campaigns"]):
        return INTERRUPTED
    return exit_code(result)


def _targets(options: argparse.Namespace, seed: Path, config: Any) -> list[Any]:
    """As named; else those that are quick: a slow one takes most of the time, for who asks."""
    from outvote.core.dialect import dialect_of
    from outvote.targets.choose import choose, known_targets, missing_packages

    wing = dialect_of(seed)
    known = known_targets(config.targets, config.folder, wing)
    quick = [n for n in wing.targets.SEARCHED if not missing_packages(known[n])]
    return choose(options.targets, known, quick if len(quick) > 1 else wing.targets.DEFAULT)


def _seed_names(options: argparse.Namespace) -> list[str]:
    """Seeds as given, groups of the zoo as their members; `layers` wants tensors of every rank."""
    from outvote.core.dialect import zoo_of

    given = options.seeds or (["tiny"] if options.strategy == "layers" else [])
    return [
        m for name in given for m in ((name,) if _is_file(name) else zoo_of(name).members_of(name))
    ]
