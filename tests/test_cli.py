"""The doors: exit codes, what becomes of an error of our own, and whom the driver trusts."""

from __future__ import annotations

import argparse
import errno
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from pathlib import Path

import pytest

from conftest import fake
from outvote import commands
from outvote.cli import _parser as cli_parser
from outvote.cli import main
from outvote.commands import values
from outvote.commands.check.run import Check
from outvote.commands.codes import exit_code
from outvote.commands.targets.job import HealthJob
from outvote.commands.targets.run import health
from outvote.config import load_config
from outvote.core.errors import UsageError
from outvote.dialects.keras.recipes import ClassicRecipe
from outvote.explore.job import CONSTRAINTS
from outvote.judge.compare import METRICS
from outvote.run.process import Limits
from outvote.search.registry import strategies
from outvote.targets.choose import known_targets

TOML = '[targets.a]\nextends = "fake"\n[targets.b]\nextends = "fake"\n'
Arguments = list[str]


@pytest.fixture
def check(
    fake_model: Path, fake_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Arguments:
    """A check of two fakes that is consistent, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    Path("outvote.toml").write_text(TOML)
    data = ["--data", str(fake_data), "--targets", "a,b", "--quiet", "--out", "out"]
    return ["check", str(fake_model), *data]


def planted(error: BaseException) -> Callable[[Check], None]:
    def run(check: Check) -> None:
        raise error

    return run


def crash_files(folder: str) -> list[Path]:
    return sorted(Path(folder).glob("outvote-crash-*.txt"))


@pytest.mark.parametrize(
    "error",
    [
        KeyError("a\nslip"),
        AssertionError(),
        RecursionError("too deep"),
        FileNotFoundError(errno.ENOENT, "No such file or directory", "lost"),
        BrokenPipeError(errno.EPIPE, "a worker has gone"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_our_own_is_no_finding(
    check: Arguments,
    error: BaseException,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Check, "run", planted(error))
    assert main(check) == 3
    (path,) = crash_files("out")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("outvote: an error inside outvote")
    assert type(error).__name__ in said
    assert str(path) in said
    text = path.read_text()
    assert "Traceback (most recent call last)" in text
    assert type(error).__name__ in text.splitlines()[-1] or "slip" in text
    assert "command   outvote check " in text
    assert "--targets a,b" in text
    assert f"python    {sys.version.split()[0]}" in text
    assert "numpy " in text


def test_a_second_crash_file_stands_beside_the_first(
    check: Arguments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Check, "run", planted(ValueError("x")))
    assert [main(check), main(check)] == [3, 3]
    assert len(crash_files("out")) == 2


def test_a_crash_before_there_is_a_folder_goes_into_the_current_one(
    check: Arguments, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_config(path: Path | None) -> None:
        raise ValueError("x")

    monkeypatch.setattr("outvote.config.load_config", load_config)
    assert main(check) == 3
    assert len(crash_files(".")) == 1


def test_where_no_folder_takes_the_crash_file_it_is_shown(
    check: Arguments, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Check, "run", planted(ValueError("x")))
    monkeypatch.setattr("outvote.commands.crash._places", lambda folder: [])
    assert main(check) == 3
    said = capsys.readouterr().err
    assert "Traceback (most recent call last)" in said
    assert "please send us the lines above" in said.splitlines()[-1]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EMFILE])
def test_what_the_system_refuses_is_for_the_user(
    check: Arguments,
    number: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = OSError(number, os.strerror(number), "there")
    monkeypatch.setattr(Check, "run", planted(refused))
    assert main(check) == 2
    assert "the system refused" in capsys.readouterr().err
    assert not crash_files("out")


def test_a_writer_that_loses_a_file_is_our_error(
    check: Arguments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not everything that fails while results are written is a full disk."""

    def write_all(result: object, folder: Path) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "template.html")

    monkeypatch.setattr("outvote.report.write_all", write_all)
    assert main(check) == 3


@pytest.mark.slow
def test_a_reader_who_has_gone_is_no_verdict(check: Arguments) -> None:
    """`outvote check … | head -0` has seen nothing: neither 0 nor 1."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "outvote", *map(str, check)]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert Path("out/result.json").is_file()


def test_the_help_lists_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "3 an error inside outvote" in said


@pytest.mark.slow
@pytest.mark.parametrize("how", ["-m", "script"])
def test_the_driver_imports_nothing_of_the_current_folder(check: Arguments, how: str) -> None:
    """Beside a model that was downloaded may lie a json.py, a numpy.py, a keras.py."""
    for name in ("json", "argparse", "numpy", "rich", "tomllib", "keras", "jinja2", "psutil"):
        Path(f"{name}.py").write_text("open('run', 'w').write(__name__); raise SystemExit(77)")
    script = [str(Path(sys.executable).with_name("outvote"))]
    command = [sys.executable, "-m", "outvote"] if how == "-m" else script
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [*command, *check, "--targets", "a"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert not Path("run").exists(), Path("run").read_text()
    assert done.returncode == 2
    assert "a comparison needs two targets" in done.stderr


# Trust of folders.


@pytest.mark.parametrize(
    "name", ["torch", "tensorflow:xla", "fake", "theano", "keras==3.9.0/torch"]
)
@pytest.mark.parametrize("named", [False, True])
def test_a_file_cannot_change_a_built_in_target(
    check: Arguments, name: str, named: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("evil.py").write_text("")
    Path("outvote.toml").write_text(
        f'{TOML}[targets."{name}"]\nextends = "fake"\nsetup = "evil.py"'
    )
    more = ["--config", "outvote.toml"] if named else []
    for arguments in ([*check, *more], ["targets", *more]):
        assert main(arguments) == 2
        assert f"would change what {name!r} means" in capsys.readouterr().err


def test_the_file_that_defines_a_target_is_named(
    check: Arguments, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(check) == 0
    assert "defined in outvote.toml: a, b" in capsys.readouterr().out
    told = json.loads(Path("out/result.json").read_text())["targets"]
    assert {target["name"]: target["config"] for target in told} == {
        "a": "outvote.toml",
        "b": "outvote.toml",
    }


def test_targets_of_a_file_start_only_when_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`outvote targets` beside a stranger's file runs none of its scripts."""
    monkeypatch.chdir(tmp_path)
    Path("setup.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')")
    Path("outvote.toml").write_text('[targets.a]\nextends = "fake"\nsetup = "setup.py"')
    a = known_targets(load_config(None))["a"]
    (row,) = health(HealthJob((replace(a, worker="other"),)))
    assert (row.state, row.remedy) == (
        "not started",
        "defined in outvote.toml, started when --targets names it",
    )
    assert not Path("run").exists()
    (row,) = health(HealthJob((a,), named=True))
    assert row.state == "ok", row.remedy


def test_names_in_a_campaign_do_not_start_what_a_found_file_defines(
    check: Arguments, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither the campaign nor the file need be the user's; naming one of them is asking for it."""
    fuzz = ["fuzz", *check[1:], "--budget", "2", "--inputs", "4", "--minimise", "0"]
    assert main([*fuzz, "--rules", "LR,LC"]) == 0
    resumed = ["fuzz", "--resume", "out", "--quiet"]
    capsys.readouterr()
    assert main(resumed) == 2
    assert capsys.readouterr().err == (
        "outvote: the campaign in out names the target 'a', and outvote.toml, which lies here, "
        "defines it; as you named neither, it is not started. If both are yours, add: "
        "--config outvote.toml\n"
    )
    assert main([*resumed, "--config", "outvote.toml"]) == 0


def test_a_target_that_cannot_be_here_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a Python that classic libraries have no builds for, they are listed with that reason."""

    def interpreter(recipe: ClassicRecipe, named: Path | None) -> Path:
        raise UsageError("classic targets need Python 3.11, and python3.11 is not on the path")

    monkeypatch.setattr(ClassicRecipe, "interpreter", interpreter)
    known = known_targets()
    rows = health(HealthJob((known["theano"], known["mxnet"], known["fake"]), named=True))
    told = {row.name: row.state for row in rows}
    assert told == {"theano": "not here", "mxnet": "not here", "fake": "ok"}
    assert "need Python 3.11" in rows[0].remedy


def test_a_library_that_hangs_is_waited_for_once() -> None:
    """Its other modes are not started; others that need less are."""
    stuck = replace(fake("stuck", "hang:relu"), packages=("json", "csv"))
    others = (
        replace(stuck, name="stuck:graph", mode="graph"),
        replace(stuck, name="stuck:twin", packages=("json", "csv", "numpy")),
        replace(fake("fine"), packages=("json",)),
    )
    limits = Limits(start_seconds=30, silence_seconds=0.3)
    rows = health(HealthJob((others[0], stuck, *others[1:]), named=True), limits=limits)
    told = {row.name: (row.state, row.remedy) for row in rows}
    assert told["stuck"] == ("broken", "no progress for 0 s; stopped")
    why = "not started: stuck, which it stands on, hangs"
    assert told["stuck:graph"] == told["stuck:twin"] == ("broken", why)
    assert told["fine"][0] == "ok"


# The same rooms in every command, and every option once.

ROOMS = {"options", "job", "run", "show"}
FOLDERS = [path.parent for path in Path(commands.__path__[0]).glob("*/__init__.py")]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_command_has_the_rooms_of_all_commands(folder: Path) -> None:
    """Only `result` may be missing: where the command makes no result.json of its own."""
    names = {path.stem for path in folder.glob("*.py")}
    assert names >= ROOMS
    heads = [p.stem for p in folder.glob("*.py") if re.search(r"\bhead\(\n?\s*\"", p.read_text())]
    assert heads in ([], ["result"])
    assert ("result" in names) == bool(heads)


@pytest.mark.parametrize("name", commands.names())
def test_the_doors_of_a_command_are_those_of_all(name: str) -> None:
    options, run, show = (commands.room(name, room) for room in ("options", "run", "show"))
    assert isinstance(options.PLACE, int)
    assert list(inspect.signature(options.add).parameters) == ["commands"]
    assert list(inspect.signature(options.job_of).parameters) == ["options"]
    assert list(inspect.signature(run.run).parameters) == ["job", "view"]
    assert list(inspect.signature(show.show).parameters) == ["result", "job", "screen"]
    jobs = [
        kind
        for kind in vars(commands.room(name, "job")).values()
        if isinstance(kind, type) and is_dataclass(kind)
    ]
    assert jobs
    assert all(kind.__dataclass_params__.frozen for kind in jobs)  # type: ignore[attr-defined]


def test_commands_are_listed_in_the_order_that_they_say() -> None:
    places = [commands.room(name, "options").PLACE for name in commands.names()]
    assert places == sorted(set(places)), "two commands want the same place"
    assert commands.names()[0] == "check"
    assert set(commands.names()) == {folder.name for folder in FOLDERS}


def test_every_option_is_defined_once() -> None:
    texts = [path.read_text() for path in Path(commands.__path__[0]).rglob("*.py")]
    defined = [
        flag for text in texts for flag in re.findall(r'add_argument\(\s*"(--[a-z0-9-]+)"', text)
    ]
    twice = sorted({flag for flag in defined if defined.count(flag) > 1})
    assert twice == ["--train"]  # a switch of `check`, a file of `coverage`
    assert len(defined) > 60


@pytest.mark.parametrize("seed", ["-1", "1.5", "x", str(2**32)])
@pytest.mark.parametrize("command", ["check", "fuzz", "localize", "nan", "explore", "pollution"])
def test_a_seed_is_refused_before_anything_starts(
    command: str, seed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    needed = {"explore": ["b.keras", "--data", "d"], "pollution": ["b.keras", "--data", "d"]}
    with pytest.raises(SystemExit) as ended:
        main([command, "a.keras", *needed.get(command, []), "--seed", seed])
    assert ended.value.code == 2
    assert "expected a whole number from 0" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "value"), [("0.8", 0.8), ("80%", 0.8), ("100%", 1.0), ("1", 1.0)])
def test_a_part_is_written_in_two_ways(text: str, value: float) -> None:
    assert values.part(text) == value


@pytest.mark.parametrize("text", ["80", "0", "0%", "101%", "x", "%", "-1", "nan"])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"expected a part such as 0\.8 or 80%"):
        values.part(text)


def test_the_old_name_of_confirm_on_still_works() -> None:
    """`explore --confirm torch` was its name; it is the beginning of the new one."""
    options = cli_parser().parse_args(["explore", "a", "b", "--data", "d", "--confirm", "jax"])
    assert options.confirm_on == "jax"


def test_a_run_that_was_stopped_tells_what_it_found() -> None:
    failing = {"gate": {"failing": ["0" * 12]}, "interrupted": True}
    assert exit_code(failing) == 1
    assert exit_code({"gate": {"failing": []}, "interrupted": True}) == 130
    assert exit_code({"verdict": "changed"}) == 1
    assert exit_code({"verdict": "consistent", "interrupted": False}) == 0
    assert exit_code({"gate": None, "comparison": {"interrupted": True}}) == 130


@pytest.mark.parametrize(
    ("command", "option", "names"),
    [
        ("check", "--metric", METRICS),
        ("fuzz", "--strategy", tuple(strategies())),
        ("explore", "--constraint", CONSTRAINTS),
    ],
)
def test_help_names_everything_that_is_found_by_its_file(
    command: str, option: str, names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = re.search(rf"^  {option} (.*?)^  --", capsys.readouterr().out, re.DOTALL | re.MULTILINE)
    assert text is not None
    assert len(names) > 2
    assert set(names) <= set(re.findall(r"[\w-]+", text[1]))
