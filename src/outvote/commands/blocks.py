"""Every option that commands share, defined once; and what its value becomes in a job.

Only argparse is imported here: `outvote --help` is instant.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.commands import values
from outvote.core.errors import UsageError
from outvote.findings.gate import FAIL_ON

if TYPE_CHECKING:
    from outvote.campaign.job import SeedFile
    from outvote.config import Config
    from outvote.core.dialect import Dialect
    from outvote.core.lesson import Lesson
    from outvote.core.target import Target
    from outvote.findings.gate import Gate
    from outvote.fleet.address import Address
    from outvote.run.process import Limits

Group = argparse._ActionsContainer  # a parser, or a group of its options


def new_parser(
    commands: Any, name: str, text: str, description: str, epilog: str
) -> argparse.ArgumentParser:
    """The parser of a command; `commands` is what argparse calls its subparsers."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def plugins(folder: str) -> str:
    """The names of what a folder of ours holds, for a help: its files are read, not imported.

    A file says its NAME; where files of a folder say none, theirs are the names.
    """
    files = sorted((Path(__file__).parent.parent / folder).glob("[a-z]*.py"))
    told = [re.search(r'^NAME = "(.+)"$', file.read_text("utf-8"), re.MULTILINE) for file in files]
    names = [found[1] for found in told if found]
    return ", ".join(names or [file.stem.replace("_", "-") for file in files])


# What is read.


def add_data(
    group: Group,
    text: str = ".npz; default: random inputs",
    kind: Any = Path,
    required: bool = False,
    several: bool = False,
) -> None:
    group.add_argument(
        "--data",
        type=kind,
        required=required,
        action="append" if several else "store",
        metavar="FILE",
        help=text,
    )


def add_config(group: Group) -> None:
    group.add_argument("--config", type=Path, metavar="FILE", help="default: ./outvote.toml")


def add_custom(group: Group) -> None:
    """Layers that Keras does not know, and code in the file: both run only where asked for."""
    group.add_argument(
        "--custom", type=Path, metavar="FILE", help="defines custom layers or ONNX operators"
    )
    group.add_argument(
        "--allow-code",
        action="store_true",
        help="run Lambda code, or operators of --custom (only if trusted)",
    )


def add_count(group: Group, text: str = "use the first N inputs") -> None:
    group.add_argument("--count", type=values.positive, metavar="N", help=text)


def add_oracle(
    group: Group,
    names: tuple[str, ...] = ("metamorphic",),
    text: str = "also hold every target against itself; one target is enough",
) -> None:
    group.add_argument("--oracle", choices=names, help=text)


def add_lesson(parser: argparse.ArgumentParser, text: str) -> None:
    group = parser.add_argument_group("training (docs/training.md)")
    group.add_argument("--train", action="store_true", help=text)
    group.add_argument(
        "--loss", metavar="L", help="a loss by its name or as JSON; default: one that fits y"
    )
    group.add_argument(
        "--optimizer", metavar="O", help="an optimiser by its name or as JSON (adam)"
    )
    group.add_argument(
        "--steps", type=values.positive, metavar="N", help="steps on the first batch (3)"
    )


def lesson_of(options: argparse.Namespace, wing: Dialect) -> Lesson | None:
    from outvote.core.lesson import Lesson

    asked = [name for name in ("loss", "optimizer", "steps") if getattr(options, name)]
    if not options.train:
        if asked:
            raise UsageError(f"--{asked[0]} is about training; add --train")
        return None
    if not wing.has("lesson"):
        raise UsageError(
            f"--train: a model of {wing.name} is not trained, for none of the runtimes that run it "
            "here differentiates; give the .keras file or the .pt2 program that it was made of"
        )
    return Lesson(
        wing.lesson.named(options.optimizer or "adam", "--optimizer"),
        wing.lesson.named(options.loss, "--loss") if options.loss else None,
        options.steps or 3,
    )


# Where it runs.


def add_targets(group: Group, text: str) -> None:
    group.add_argument("--targets", type=values.target_names, metavar="A,B,...", help=text)


def add_target(group: Group, text: str, default: str | None = None) -> None:
    group.add_argument("--target", default=default, metavar="T", help=text)


def add_find_links(group: Group) -> None:
    """What offline machines need, on every command that may build an environment."""
    group.add_argument(
        "--find-links",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder or page of wheels for targets with versions; may be repeated",
    )


def add_batch_size(group: Group, default: int) -> None:
    group.add_argument(
        "--batch-size", type=values.positive, default=default, metavar="N", help="%(default)s"
    )


def add_jobs(group: Group) -> None:
    group.add_argument("--jobs", type=values.positive, metavar="N", help="targets at work at once")


def add_cluster(group: Group, text: str) -> None:
    group.add_argument("--cluster", metavar="local:N|auto|HOST:PORT", help=text)


def cluster_of(options: argparse.Namespace) -> Address | None:
    from outvote.fleet.address import address_of

    return None if options.cluster is None else address_of(options.cluster)


def add_limits(
    parser: argparse.ArgumentParser,
    seconds: float = 300,
    gigabytes: float | None = None,
    resumed: bool = False,
) -> None:
    """What a worker may take; what may be `resumed` has to know what was said and what was not."""
    group = parser.add_argument_group("limits of a worker")
    group.add_argument(
        "--timeout",
        type=values.above_zero,
        default=None if resumed else float(seconds),
        metavar="S",
        help=f"seconds without progress ({seconds})",
    )
    group.add_argument(
        "--memory",
        type=values.above_zero,
        default=None if resumed else gigabytes,
        metavar="GIB",
        help=f"that it may hold ({'no limit' if gigabytes is None else gigabytes})",
    )


# What comes of it.


def add_out(group: Group, default: str | None = "outvote-out", text: str = "") -> None:
    group.add_argument(
        "--out",
        type=Path,
        default=Path(default) if default else None,
        metavar="DIR",
        help=text or "default: %(default)s",
    )


def add_quiet(group: Group) -> None:
    group.add_argument("--quiet", action="store_true", help="no progress")


def add_seed(group: Group, of: str = "random inputs") -> None:
    group.add_argument(
        "--seed", type=values.seed, default=0, metavar="N", help=f"of {of} (%(default)s)"
    )


def add_budget(group: Group, text: str, default: tuple[str, float] | None = None) -> None:
    group.add_argument("--budget", type=values.budget, default=default, metavar="N|TIME", help=text)


def add_until_coverage(group: Group, text: str) -> None:
    group.add_argument("--until-coverage", type=values.part, metavar="P", help=text)


def add_known(group: Group) -> None:
    group.add_argument(
        "--known",
        type=Path,
        metavar="FILE",
        help="findings that do not fail the run; default: known.toml beside outvote.toml",
    )


def add_fail_on(group: Group, default: str | None = "any") -> None:
    """How severe a finding must be to fail the run."""
    group.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default=default,
        help="what exits 1: bug; difference, or bug; any but rounding; new, which is any that "
        "--baseline has not; never; default: %(default)s",
    )
    group.add_argument(
        "--baseline", type=Path, metavar="DIR", help="an earlier run: what it found does not exit 1"
    )


def add_mad_threshold(group: Group, default: float) -> None:
    group.add_argument(
        "--mad-threshold",
        type=values.number,
        default=default,
        metavar="T_M",
        help="D_MAD that counts as inconsistent (%(default)s)",
    )


def add_tolerance(group: Group, text: str) -> None:
    group.add_argument("--tolerance", type=values.number, metavar="T", help=text)


def add_verdict(parser: argparse.ArgumentParser) -> None:
    """How much work a finding is worth, on every command that makes findings."""
    group = parser.add_argument_group("what is done about a finding")
    group.add_argument(
        "--minimise",
        type=values.number,
        default=20.0,
        metavar="S",
        help="seconds to make it small and judge it; 0: do neither (%(default)s)",
    )
    group.add_argument(
        "--confirm",
        type=values.whole,
        default=1,
        metavar="N",
        help="fresh workers in which it must show again (%(default)s)",
    )


# DeepXplore's commands.


def add_exploration(parser: argparse.ArgumentParser) -> None:
    """Where `explore`, `coverage` and `pollution` compute, what they read, where they write."""
    add_target(parser, "torch, jax or tensorflow; default: the first installed")
    add_out(parser)
    add_config(parser)
    add_custom(parser)
    add_count(parser)
    add_batch_size(parser, 128)
    add_quiet(parser)
    parser.add_argument(
        "--skip",
        type=values.names,
        default=[],
        metavar="L,...",
        help="layers without neurons, by name or kind, for instance dense",
    )
    add_limits(parser)


def add_threshold(group: Group, default: float) -> None:
    group.add_argument(
        "--threshold",
        type=values.share,
        default=default,
        metavar="T",
        help="above which a neuron counts as covered (%(default)s)",
    )


def add_iterations(group: Group) -> None:
    group.add_argument(
        "--iterations",
        type=values.positive,
        default=20,
        metavar="N",
        help="for each seed (%(default)s)",
    )


def add_step(group: Group, default: float | None = None) -> None:
    group.add_argument(
        "--step",
        type=values.above_zero,
        default=default,
        metavar="S",
        help="for pictures in 255ths of the range",
    )


def add_constraint(group: Group, default: str) -> None:
    group.add_argument(
        "--constraint",
        default=default,
        metavar="C",
        help=f"{plugins('worker/explore/constraints')}, or FILE.py (%(default)s)",
    )


def add_epochs(group: Group, text: str, default: int | None = None) -> None:
    group.add_argument("--epochs", type=values.positive, default=default, metavar="N", help=text)


# From a namespace to a job.


def config_of(options: argparse.Namespace) -> Config:
    """What `--config` names, or what lies in the current folder."""
    from outvote.config import load_config

    return load_config(options.config)


def limits_of(options: argparse.Namespace) -> Limits:
    from outvote.run.process import Limits

    memory = None if options.memory is None else int(options.memory * 2**30)
    return Limits(silence_seconds=options.timeout, memory_bytes=memory)


def custom_of(options: argparse.Namespace) -> Path | None:
    custom: Path | None = options.custom
    if custom is not None and not custom.is_file():
        raise UsageError(f"the file {custom} given with --custom does not exist")
    return custom


def gate_of(options: argparse.Namespace, folder: Path) -> Gate:
    """The gate that the options describe; `folder` is that of outvote.toml."""
    from outvote.findings.baseline import load_baseline
    from outvote.findings.gate import Gate
    from outvote.findings.known import load_known

    fail_on = getattr(options, "fail_on", None) or "any"
    baseline = load_baseline(getattr(options, "baseline", None))
    if fail_on == "new" and baseline.path is None:
        raise UsageError("--fail-on new compares with an earlier run; name it with --baseline DIR")
    return Gate(load_known(options.known, folder), fail_on, baseline)


def known_of(options: argparse.Namespace) -> dict[str, Target]:
    """Every target there is, built-in or of outvote.toml."""
    from outvote.targets.choose import known_targets

    config = config_of(options)
    return known_targets(config)


def exploration_of(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of a job that `add_exploration` reads."""
    from outvote.explore.roles import searching_target

    among = getattr(options, "targets", None)
    return {
        "target": searching_target(options.target, known_of(options), among),
        "custom": custom_of(options),
        "allow_code": options.allow_code,
        "count": options.count,
        "batch_size": options.batch_size,
        "skip": tuple(options.skip),
        "limits": limits_of(options),
        "out": options.out,
    }


def seeds_of(wanted: list[str], data: list[Path]) -> tuple[SeedFile, ...]:
    """Model files with their data; models of the zoo are built where they are not there yet."""
    from outvote.campaign.job import SeedFile
    from outvote.core.dialect import zoo_of

    if not wanted:
        raise UsageError("name at least one seed: a model file, or a name of `outvote zoo list`")
    files = [name for name in wanted if is_file(name)]
    if len(data) > len(files):
        raise UsageError(
            f"--data was given {len(data)} times for {len(files)} model files; "
            "models of the zoo bring their own data"
        )
    given = dict(zip(files, data, strict=False))
    return tuple(
        SeedFile(Path(name).stem, Path(name), given.get(name))
        if name in files
        else SeedFile(name, *zoo_of(name).seed_file(name))
        for name in wanted
    )


def is_file(name: str) -> bool:
    """Whether a seed's name is that of a file, and not one of the zoo."""
    from outvote.core.dialect import dialects

    endings = [suffix for wing in dialects() for suffix in wing.files.SUFFIXES]
    return Path(name).suffix in endings or Path(name).exists()
