"""Completion in shells: the scripts are run by the shells that they are for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from outvote.cli import main


def completion(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("outvote che", {"check"}),
        ("outvote check --fail", {"--fail-on"}),
        ("outvote check --fail-on d", {"difference"}),
        ("outvote fuzz --search ''", {"genetic", "gradient"}),
        ("outvote check mod", set()),
    ],
)
def test_bash_completes(
    words: str, expected: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(completion("bash", capsys))
    count = len(words.split()) - 1
    told = subprocess.run(
        [
            *("bash", "--norc", "-c"),
            f"source {script}; COMP_WORDS=({words}); COMP_CWORD={count}; _outvote; "
            'echo "${COMPREPLY[@]}"',
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(told.stdout.split()) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_every_command_and_option(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = completion(shell, capsys)
    option = {"zsh": "'*--fail-on[", "fish": "-l fail-on -d '"}[shell]
    for piece in ("check", "completion", "doctor", option, "bug difference any"):
        assert piece in text
    if shutil.which(shell):  # read, not run
        (tmp_path / "script").write_text(text)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)
