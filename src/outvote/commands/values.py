"""What options accept: one function per type of value, with a sentence for what it refuses."""

from __future__ import annotations

import argparse
import math

_MOST = 1e9  # of anything that is no count: beyond it no clock and no memory can follow


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


def share(text: str) -> float:
    """A number from 0 to 1."""
    value = number(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"expected a share from 0 to 1, received {text!r}")
    return value


def part(text: str) -> float:
    """A part of a whole, above nothing: 0.8 or 80%."""
    try:
        value = percent(text[:-1]) / 100 if text.endswith("%") else share(text)
    except argparse.ArgumentTypeError:
        value = 0
    if value == 0:
        raise argparse.ArgumentTypeError(f"expected a part such as 0.8 or 80%, received {text!r}")
    return value


def number(text: str) -> float:
    """A number from 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= _MOST:
        raise argparse.ArgumentTypeError(
            f"expected a number from 0 to {_MOST:g}, received {text!r}"
        )
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


def numbers(text: str) -> tuple[float, ...]:
    """Numbers separated by commas."""
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = (math.nan,)
    if not all(map(math.isfinite, found)):
        raise argparse.ArgumentTypeError(f"expected numbers separated by commas, received {text!r}")
    return found


def low_high(text: str) -> tuple[float, float]:
    """A range: LOW,HIGH."""
    found = numbers(text)
    if len(found) != 2 or not found[0] < found[1]:
        raise argparse.ArgumentTypeError(f"expected LOW,HIGH with LOW < HIGH, received {text!r}")
    return found[0], found[1]


def rectangle(text: str) -> tuple[int, int]:
    """A size: HEIGHTxWIDTH."""
    height, _, width = text.partition("x")
    if not (height.isdecimal() and width.isdecimal() and int(height) and int(width)):
        raise argparse.ArgumentTypeError(f"expected HEIGHTxWIDTH such as 10x10, received {text!r}")
    return int(height), int(width)
