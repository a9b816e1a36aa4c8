"""What a person sees while a command works: on a terminal, in a log, and with names that lie."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from every_command import RESULTS
from outvote import commands
from outvote.campaign.progress import Progress
from outvote.commands.fuzz.show import _left, _line, _picture, live, show_campaign
from outvote.commands.terminal import Screen, Terminal, _progress_table, coloured, table
from outvote.core.blackbox import Position
from outvote.core.errors import ReaderGoneError
from outvote.run.pool import Pool

ESCAPE = "\x1b]0;owned\x07"


class Positions:
    """As much of a Pool as progress asks for."""

    def __init__(self, known: Mapping[str, Position]) -> None:
        self._known = known

    def position(self, name: str) -> Position | None:
        return self._known.get(name)


def screen(terminal: bool = False) -> tuple[Screen, Callable[[], str]]:
    file = io.StringIO()
    made = Screen(file=file, force_terminal=terminal, width=200, color_system=None)
    return made, file.getvalue


def shown(renderable: Any) -> str:
    made, text = screen()
    made.print(renderable)
    return text()


def watched(terminal: bool) -> tuple[Terminal, Callable[[], str]]:
    found = Terminal()
    found.err, text = screen(terminal)
    return found, text


# Stages


def test_in_a_log_a_stage_is_two_lines() -> None:
    terminal, text = watched(terminal=False)
    with terminal.watch("Running [all] targets", cast(Pool, Positions({})), ["a"]):
        assert text() == "Running [all] targets …\n"
    lines = text().splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("Running [all] targets took ")


def test_on_a_terminal_the_picture_goes_when_the_stage_is_over() -> None:
    terminal, text = watched(terminal=True)
    with terminal.watch("Running", cast(Pool, Positions({})), ["a"]):
        pass
    assert "took" not in text()
    with (
        pytest.raises(ValueError, match="broken"),
        terminal.watch("Running", cast(Pool, Positions({})), ["a"]),
    ):
        raise ValueError("broken")


def test_every_target_says_where_it_is() -> None:
    positions = {
        "jax": Position(30, 120, "conv[1]"),
        "torch": Position(0, 0, None),
        "done": Position(5, 5, ""),
    }
    pool = cast(Pool, Positions(positions))
    lines = shown(_progress_table("Running", pool, [*positions, "down"], 10.0)).splitlines()
    told = {line.split()[0]: line.split()[1:] for line in lines[2:]}
    assert told == {
        "jax": ["30/120", "3.0/s", "30", "s", "conv[1]"],
        "torch": ["…"],
        "done": ["5/5", "0.5/s"],
        "down": ["…"],
    }
    assert "Running  10 s" in lines[0]
    assert shown(_progress_table("Running", pool, ["jax"], 0.0)), "no time has passed"


@pytest.mark.parametrize("terminal", [False, True])
def test_an_environment_that_is_built_is_announced(terminal: bool) -> None:
    view, text = watched(terminal)
    with view.announce("keras==3.9.0 [old]") as tell:
        tell("Collecting keras " + "x" * 500)
    assert "Building keras==3.9.0 [old] took " in text()


def test_quiet_says_nothing_of_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    view = Terminal(quiet=True)
    with view.watch("Running", cast(Pool, Positions({})), []), view.announce("x") as tell:
        tell("line")
    with view.progress() as told:
        told(Progress())
    view.say("the result")
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out == "the result\n"


# A campaign

PROGRESS = Progress(
    tested=120, valid=90, seconds=60.0, findings=2, best=1.5, share=0.25,
    rules={"LA": (80, 10), "WS": (40, 0)}, last="torch differs in [Dense]",
)  # fmt: skip


def test_a_line_of_a_campaign_holds_its_figures() -> None:
    assert _line(PROGRESS) == (
        "120 mutants, 120/min, 75.0% valid, 2 findings, amplification 1.5, 25% of the budget, "
        "3 min left"
    )
    assert _line(Progress()) == (
        "0 mutants, 0/min, 100.0% valid, 0 findings, amplification 0, 0% of the budget, "
        "unknown time left"
    )


@settings(max_examples=25)
@given(st.floats(0, 1e6), st.floats(0, 2))
def test_the_time_that_is_left_is_no_surprise(seconds: float, share: float) -> None:
    told = _left(Progress(seconds=seconds, share=share))
    if share >= 1:
        assert told == "0 s"
    elif share == 0:
        assert told == "unknown time"
    else:
        figure, unit = told.split()
        left = float(figure) * {"s": 1, "min": 60}[unit]
        assert left == pytest.approx(seconds * (1 - share) / share, rel=0.5, abs=1)


def test_the_picture_of_a_campaign_names_rules_and_the_newest_finding() -> None:
    text = shown(_picture(PROGRESS))
    assert "LA" in text
    assert "10/80" in text
    assert "newest: torch differs in [Dense]" in text


@pytest.mark.parametrize("terminal", [False, True])
def test_a_campaign_is_followed(terminal: bool) -> None:
    made, text = screen(terminal)
    with live(made) as tell:
        for _ in range(3):
            tell(PROGRESS)
    said = text()
    assert "Starting targets and reading seeds" in said
    if not terminal:
        assert said.count("120 mutants") == 1, "a line in ten seconds, not one per generation"


def test_a_campaign_that_was_stopped_says_how_to_go_on() -> None:
    result = {**RESULTS["fuzz"], "interrupted": True}
    target = {**result["targets"][0], "config": "my file.toml"}
    made, text = screen()
    show_campaign({**result, "targets": [target]}, Path("my folder"), made)
    said = text()
    assert "go on with: outvote fuzz --resume 'my folder' --config 'my file.toml'" in said
    assert "STOPPED" in said
    made, text = screen()
    show_campaign(RESULTS["fuzz"], Path("out"), made)
    assert "go on with" not in text()
    assert "DONE" in text()


# Foreign text


def test_nothing_that_is_printed_commands_the_terminal() -> None:
    made, text = screen()
    made.say(f"layer {ESCAPE}")
    made.print(table("t", ("name",), [[ESCAPE], [coloured(ESCAPE, "red")]]))
    made.verdict({"verdict": "inconsistent", "summary": ESCAPE}, Path(ESCAPE))
    made.warnings({"warnings": [ESCAPE, "[bold]not bold[/]"]})
    assert "\x1b" not in text()
    assert "\x07" not in text()
    assert "[bold]not bold[/]" in text(), "markup of others is text"


def test_a_reader_that_has_gone_is_an_exception_and_no_exit() -> None:
    made, _ = screen()
    with pytest.raises(ReaderGoneError):
        made.on_broken_pipe()


def test_the_file_that_defines_targets_is_named_once() -> None:
    made, text = screen()
    targets = [{"name": name, "config": "o.toml"} for name in "ba"]
    made.configs({"targets": [*targets, {"name": "torch", "config": None}]})
    assert text() == "defined in o.toml: b, a\n"
    made.configs({"targets": ["names alone"]})
    assert text() == "defined in o.toml: b, a\n"


@pytest.mark.parametrize("name", [n for n in sorted(RESULTS) if " " not in n and n != "report"])
def test_every_result_is_shown_with_its_summary(name: str, tmp_path: Path) -> None:
    result = RESULTS[name]
    made, text = screen()
    job = type("Job", (), {"out": tmp_path, "model": Path("m.keras"), "path": Path("m.keras")})()
    commands.room(name, "show").show(result, job, made)
    said = " ".join(text().split())
    assert " ".join(result["summary"].split()) in said
    assert isinstance(made, Console)
