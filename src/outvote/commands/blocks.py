"""Options that `explore`, `coverage` and `pollution` share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from outvote.commands.options import above_zero, names, number, positive
from outvote.core.errors import UsageError


def numbers(text: str) -> tuple[float, ...]:
    """Numbers separated by commas."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected numbers separated by commas, received {text!r}"
        ) from None


def low_high(text: str) -> tuple[float, float]:
    """A range: LOW,HIGH."""
    found = numbers(text)
    if len(found) != 2 or not found[0] < found[1]:
        raise argparse.ArgumentTypeError(f"expected LOW,HIGH with LOW < HIGH, received {text!r}")
    return found[0], found[1]


def rectangle(text: str) -> tuple[int, int]:
    """A size: HEIGHTxWIDTH."""
    height, _, width = text.partition("x")
    if not (height.isdigit() and width.isdigit() and int(height) and int(width)):
        raise argparse.ArgumentTypeError(f"expected HEIGHTxWIDTH such as 10x10, received {text!r}")
    return int(height), int(width)


def share(text: str) -> float:
    """A number from 0 to 1."""
    value = number(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"expected a share from 0 to 1, received {text!r}")
    return value


def seed(text: str) -> int:
    """A whole number from 0."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, received {text!r}")
    return int(text)


def add_common(parser: argparse.ArgumentParser, chance: bool = True) -> None:
    """Where to compute, what to read, where to write; a seed where chance plays a part."""
    parser.add_argument(
        "--target", metavar="NAME", help="torch, jax or tensorflow; default: the first installed"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("outvote-out"), metavar="DIR", help="default: %(default)s"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="default: ./outvote.toml")
    parser.add_argument("--custom", type=Path, metavar="FILE.py", help="defines custom layers")
    parser.add_argument(
        "--allow-code", action="store_true", help="run Lambda code in the file (only if trusted)"
    )
    parser.add_argument("--count", type=positive, metavar="N", help="use the first N inputs")
    parser.add_argument("--batch-size", type=positive, default=128, metavar="N", help="%(default)s")
    if chance:
        parser.add_argument(
            "--seed", type=seed, default=0, metavar="N", help="for all random choices (%(default)s)"
        )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument(
        "--skip",
        type=names,
        default=[],
        metavar="L,...",
        help="layers without neurons, by name or kind, for instance dense",
    )
    parser.add_argument(
        "--timeout",
        type=above_zero,
        default=300.0,
        metavar="S",
        help="without progress (%(default)s)",
    )
    parser.add_argument("--memory", type=above_zero, metavar="GIB", help="default: no limit")


def common(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of a job that `add_common` reads."""
    from outvote.run.process import Limits

    if options.custom is not None and not options.custom.is_file():
        raise UsageError(f"the file {options.custom} given with --custom does not exist")
    memory = int(options.memory * 2**30) if options.memory is not None else None
    chance = {"seed": options.seed} if hasattr(options, "seed") else {}
    return {
        **chance,
        "target": gradient_target(options),
        "custom": options.custom,
        "allow_code": options.allow_code,
        "count": options.count,
        "batch_size": options.batch_size,
        "skip": tuple(options.skip),
        "limits": Limits(silence_seconds=options.timeout, memory_bytes=memory),
    }


def chosen_targets(options: argparse.Namespace) -> list[Any]:
    """The targets of --targets."""
    from outvote.targets.choose import choose

    return choose(options.targets, _known(options))


def gradient_target(options: argparse.Namespace) -> Any:
    """The target whose gradient is followed: as asked for, or the first that has one."""
    from outvote.explore.choosing import searching_target

    return searching_target(options.target, _known(options), getattr(options, "targets", None))


def confirming(options: argparse.Namespace, searching: Any) -> Any:
    """The target on which finds are confirmed. Between those of --targets, `check` confirms."""
    from outvote.explore.choosing import confirming_target

    if options.targets is not None:
        return None
    return confirming_target(options.confirm, searching, _known(options))


def _known(options: argparse.Namespace) -> dict[str, Any]:
    from outvote.config import load_config
    from outvote.targets.choose import known_targets

    config = load_config(options.config)
    return dict(known_targets(config.targets, config.folder))


def seeds_of(wanted: list[str], data: list[Path]) -> Any:
    """Model files with their data; models of the zoo are built where they are not there yet."""
    from outvote.campaign.job import SeedFile
    from outvote.core.dialect import zoo_of

    if not wanted:
        raise UsageError("name at least one seed: a model file, or a name of `outvote zoo list`")
    files = [name for name in wanted if _is_file(name)]
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


def _is_file(name: str) -> bool:
    from outvote.core.dialect import dialects

    endings = [suffix for wing in dialects() for suffix in wing.files.SUFFIXES]
    return Path(name).suffix in endings or Path(name).exists()
