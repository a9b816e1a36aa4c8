"""From the keywords of a call to the job of a command: its options, under the same names."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outvote import commands
from outvote.core.errors import UsageError


def job_asked(command: str, **given: Any) -> Any:
    """What the command line makes of the same options; without `out` nothing is written.

    Values are as Python has them, or the text that one would type. None: not given.
    """
    actions = actions_of(command)
    values = {name: action.default for name, action in actions.items()}
    values |= {"out": None, "command": command}
    for name, value in given.items():
        if name not in actions:
            raise UsageError(
                f"there is no setting {name!r} of {command}; there are {', '.join(sorted(actions))}"
            )
        if value is not None:
            values[name] = _accepted(actions[name], value)
    return commands.room(command, "options").job_of(argparse.Namespace(**values))


def actions_of(command: str) -> dict[str, argparse.Action]:
    """The options of a command, by the names that keywords have."""
    subparsers = argparse.ArgumentParser().add_subparsers()
    commands.room(command, "options").add(subparsers)
    parser: argparse.ArgumentParser = subparsers.choices[command]
    found = [action for action in parser._actions if action.dest not in ("help", "quiet")]
    return {action.dest: action for action in found}


def _accepted(action: argparse.Action, value: Any) -> Any:
    if isinstance(action, argparse._StoreTrueAction):
        return bool(value)
    if isinstance(action, argparse._AppendAction) or action.nargs in ("*", "+"):
        items = value.items() if isinstance(value, Mapping) else _several(value)
        return [_single(action, item) for item in items]
    return _single(action, value)


def _several(value: Any) -> list[Any]:
    return [value] if isinstance(value, str | Path) else list(value)


def _single(action: argparse.Action, value: Any) -> Any:
    """A value that the option accepts: text and numbers are read as they are when typed."""
    typed = isinstance(value, str | int | float) and not isinstance(value, bool)
    if typed and callable(action.type):
        try:
            value = action.type(str(value))
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"{action.dest}: {error}") from error
    if action.choices is not None and value not in action.choices:
        known = ", ".join(map(str, action.choices))
        raise UsageError(f"{action.dest}: choose from {known}; received {value!r}")
    return value
