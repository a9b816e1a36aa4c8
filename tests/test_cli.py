"""The doors: exit codes, what becomes of an error of our own, and whom the driver trusts."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from outvote.cli import main
from outvote.commands.check.run import Check

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


def test_a_reader_who_has_gone_is_no_verdict(check: Arguments) -> None:
    """`outvote check … | head -0` has seen nothing: neither 0 nor 1."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "outvote", *check]
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
