"""What the commands' options accept, and the codes they end with."""

from __future__ import annotations

import argparse
import math

CONSISTENT, FINDINGS, USAGE, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 130
RAW = argparse.RawDescriptionHelpFormatter


def names(text: str) -> list[str]:
    """Names separated by commas."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"expected names separated by commas, received {text!r}")
    return names


def target_names(text: str) -> list[str]:
    """Names of targets, with versions and braces, separated by commas."""
    from outvote.core.errors import UsageError
    from outvote.targets.names import split_names

    try:
        return split_names(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def add_find_links(command: argparse.ArgumentParser) -> None:
    """The option that offline machines need, on every command that may build an environment."""
    command.add_argument(
        "--find-links",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder or page of wheels for targets with versions; may be repeated",
    )


def add_verdict_options(command: argparse.ArgumentParser) -> None:
    """How much work a finding is worth, on every command that makes findings."""
    verdict = command.add_argument_group("what is done about a finding")
    verdict.add_argument(
        "--minimise",
        type=number,
        default=20.0,
        metavar="S",
        help="seconds to make it small and judge it; 0: do neither (%(default)s)",
    )
    verdict.add_argument(
        "--confirm",
        type=whole,
        default=1,
        metavar="N",
        help="fresh workers in which it must show again (%(default)s)",
    )


def dimension(text: str) -> tuple[str, int]:
    """The name of a free dimension and its size, `batch=4`."""
    name, equals, size = text.rpartition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"expected a name and a size, batch=4; received {text!r}")
    return name, positive(size)


def whole(text: str) -> int:
    """A whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, received {text!r}")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, received {text!r}")
    return value


def count(text: str) -> int:
    """A whole number from 0."""
    return 0 if text == "0" else positive(text)


def seed(text: str) -> int:
    """A whole number that every random generator takes."""
    value = int(text) if text.isdecimal() else -1
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(
            f"expected a whole number from 0 to {2**32 - 1}, received {text!r}"
        )
    return value


def percent(text: str) -> float:
    """A number from 0 to 100."""
    value = number(text)
    if value > 100:
        raise argparse.ArgumentTypeError(f"expected a percentage from 0 to 100, received {text!r}")
    return value


def some_percent(text: str) -> float:
    """A number above 0, up to 100."""
    value = percent(text)
    if value == 0:
        raise argparse.ArgumentTypeError(f"expected a percentage above 0, received {text!r}")
    return value


def number(text: str) -> float:
    """A number from 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number from 0, received {text!r}")
    return value


def above_zero(text: str) -> float:
    """A number above 0."""
    value = number(text)
    if value == 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, received {text!r}")
    return value


def budget(text: str) -> tuple[str, float]:
    """A number of mutants (500) or a time (90s, 20m, 2h), as (what, how much)."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    try:
        if text[-1:] in units:
            return "seconds", above_zero(text[:-1]) * units[text[-1]]
        return "mutants", positive(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"expected a number of mutants (500) or a time (90s, 20m, 2h), received {text!r}"
        ) from None
