"""What options take: every bad value of every option is one sentence that names it, and exit 2."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outvote import commands
from outvote.cli import _parser, main
from outvote.commands import values

# What no option of a type takes, whatever the command.
BAD: dict[Callable[[str], Any], tuple[str, ...]] = {
    values.names: ("", ",", "a,,b", "a,"),
    values.target_names: ("", "a,,b", ","),
    values.dimension: ("", "4", "=4", "batch=", "batch=0", "batch=x", "n=1.5"),
    values.whole: ("", "-1", "1.5", "x", "1e3", "²", "9" * 5000),
    values.positive: ("", "0", "-3", "1.5", "x", "9" * 5000),
    values.seed: ("", "-1", "x", "1.5", str(2**32)),
    values.percent: ("", "-1", "100.1", "x", "nan", "inf"),
    values.share: ("", "-0.1", "1.1", "x", "nan", "inf"),
    values.part: ("", "0", "80", "0%", "101%", "%", "nan"),
    values.number: ("", "-1", "x", "nan", "inf", "-inf", "1e10", "1e308"),
    values.above_zero: ("", "0", "-1", "x", "nan", "inf", "1e308"),
    values.budget: ("", "0", "-5", "s", "0s", "5d", "m", "1.5", "infh", "nans", "1e308h"),
    values.numbers: ("", "x", "1,,2", "1;2", "nan", "1,inf"),
    values.low_high: ("", "1", "2,1", "1,1", "1,2,3", "nan,1", "0,inf", "a,b"),
    values.rectangle: ("", "10", "0x4", "4x0", "x4", "4x", "-1x2", "4X4", "1.5x2"),
}
GOOD: dict[Callable[[str], Any], dict[str, Any]] = {
    values.names: {"a": ["a"], " a , b": ["a", "b"]},
    values.target_names: {"jax,keras=={3.8.0,3.9.0}/torch": ["jax", "keras=={3.8.0,3.9.0}/torch"]},
    values.dimension: {"batch=4": ("batch", 4), "a=b=2": ("a=b", 2)},
    values.whole: {"0": 0, "12": 12},
    values.positive: {"1": 1, "12": 12},
    values.seed: {"0": 0, str(2**32 - 1): 2**32 - 1},
    values.percent: {"0": 0.0, "100": 100.0, "2.5": 2.5},
    values.share: {"0": 0.0, "1": 1.0, "1e-3": 0.001},
    values.part: {"1%": 0.01, "1": 1.0},
    values.number: {"0": 0.0, "1e-9": 1e-9, "1e9": 1e9},
    values.above_zero: {"1e-9": 1e-9, "3": 3.0},
    values.budget: {
        **{"500": ("mutants", 500), "90s": ("seconds", 90.0)},
        **{"1.5m": ("seconds", 90.0), "2h": ("seconds", 7200.0)},
    },
    values.numbers: {"1": (1.0,), "-1,2.5": (-1.0, 2.5)},
    values.low_high: {"-1,1": (-1.0, 1.0)},
    values.rectangle: {"10x20": (10, 20)},
}


def types() -> list[Callable[[str], Any]]:
    """Every type that the module has."""
    return [
        found
        for name, found in vars(values).items()
        if callable(found) and getattr(found, "__module__", "") == values.__name__
        if not name.startswith("_")
    ]


@pytest.mark.parametrize("kind", types(), ids=lambda kind: kind.__name__)
def test_every_type_takes_what_it_says_and_nothing_else(kind: Callable[[str], Any]) -> None:
    for text, value in GOOD[kind].items():
        assert kind(text) == value
    for text in BAD[kind]:
        with pytest.raises((argparse.ArgumentTypeError, ValueError)) as refused:
            kind(text)
        if isinstance(refused.value, argparse.ArgumentTypeError):
            told = str(refused.value)
            assert told.startswith("expected "), "what would be right comes first"
            assert "\n" not in told


@cache
def root() -> argparse.ArgumentParser:
    return _parser()


def parsers() -> dict[str, argparse.ArgumentParser]:
    (action,) = (a for a in root()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


def options() -> Iterator[Any]:
    """Every option of every command that has a type of ours or choices."""
    for command, parser in parsers().items():
        for action in parser._actions:
            if action.option_strings and (action.type in BAD or action.choices):
                yield pytest.param(command, action, id=f"{command} {action.option_strings[0]}")


def needed(parser: argparse.ArgumentParser, but: str) -> list[str]:
    """What a command cannot do without, so that nothing else is wrong."""
    given = []
    for action in parser._actions:
        if action.option_strings and action.required and but not in action.option_strings:
            given += [action.option_strings[0], "1.0"]
        elif not action.option_strings and action.nargs != 0:
            first = next(iter(action.choices)) if action.choices else "a.keras"
            given += [str(first)] * (2 if action.nargs == "+" else 1)
    return given


@pytest.mark.parametrize(("command", "action"), list(options()))
def test_a_bad_value_is_one_sentence_with_the_option_the_value_and_exit_2(
    command: str, action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    flag = action.option_strings[0]
    bad = BAD[action.type][1:3] if action.type in BAD else ("nonsense",)
    for text in bad:
        with pytest.raises(SystemExit) as ended:
            root().parse_args([command, *needed(parsers()[command], flag), f"{flag}={text}"])
        assert ended.value.code == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        assert said.startswith(f"outvote: argument {'/'.join(action.option_strings)}: "), said
        assert f"see `outvote {command} --help`" in said
        assert repr(text) in said or text in said, "which value it was"


def test_every_command_has_such_options() -> None:
    """Or the test above would prove less than it says."""
    found = {param.values[0] for param in options()}
    assert len(found) >= len(commands.names()) - 5
    assert found >= {"check", "fuzz", "explore", "bisect", "nan", "localize"}
    assert len(list(options())) > 80


def test_every_type_that_options_use_is_in_the_table() -> None:
    used = {a.type for parser in parsers().values() for a in parser._actions}
    ours = {kind for kind in used if getattr(kind, "__module__", "") == values.__name__}
    assert ours <= set(BAD)
    assert set(types()) == set(BAD) == set(GOOD)


@pytest.mark.parametrize("command", commands.names())
def test_what_is_unknown_is_said(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, *needed(parsers()[command], ""), "--no-such-option"])
    assert ended.value.code == 2
    assert "--no-such-option" in capsys.readouterr().err


@settings(max_examples=25)
@given(st.floats(min_value=0, max_value=1e9))
def test_numbers_are_read_as_they_are_written(value: float) -> None:
    assert values.number(repr(value)) == value
    assert values.numbers(f"{value!r},{-value!r}") == (value, -value)


@settings(max_examples=25)
@given(st.text(max_size=6))
def test_whatever_is_typed_is_a_value_or_a_sentence(text: str) -> None:
    """Nothing else may come out of a type: argparse would show a traceback."""
    for kind in types():
        try:
            found = kind(text)
        except (argparse.ArgumentTypeError, ValueError):
            continue
        flat = found if isinstance(found, tuple | list) else [found]
        assert all(math.isfinite(n) for n in flat if isinstance(n, float)), (kind, text)
