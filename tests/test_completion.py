"""Completion: each script, installed as its guide says, is used by the shell that it is for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from outvote.cli import main

pytestmark = pytest.mark.slow

ASKED = [
    ("outvote che", {"check"}),
    ("outvote check --fail", {"--fail-on"}),
    ("outvote check --fail-on d", {"difference"}),
    ("outvote fuzz --search ", {"genetic", "gradient"}),
    ("outvote zoo ", {"list", "build", "train"}),
    ("outvote zoo train --epo", {"--epochs"}),
    ("outvote completion z", {"zsh"}),
    ("outvote check mod", {"model.keras"}),
]
# Shows what has been typed and completed; how long it takes to draw a prompt does not matter.
SHOWN = """
autoload -U compinit && compinit -u -D
unsetopt list_ambiguous
shown() { print -r -- "<$BUFFER>"; BUFFER=; zle .reset-prompt }
zle -N shown && bindkey '^X' shown
"""


@pytest.fixture
def installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Path:
    """A folder with a model and the scripts, each where its shell looks for it."""
    folder = tmp_path / "home"
    (folder / "fish" / "completions").mkdir(parents=True)
    (folder / "model.keras").touch()
    for shell, place in (
        ("bash", "outvote"),
        ("zsh", "_outvote"),
        ("fish", "fish/completions/outvote.fish"),
    ):
        assert main(["completion", shell]) == 0
        (folder / place).write_text(capsys.readouterr().out)
    monkeypatch.chdir(folder)
    return folder


def program(shell: str) -> str:
    if found := shutil.which(shell):
        return found
    told = f"{shell} is not installed"
    if os.environ.get("CI"):
        pytest.fail(told)
    pytest.skip(told)


@pytest.mark.parametrize(("line", "expected"), ASKED)
def test_bash_completes(line: str, expected: set[str], installed: Path) -> None:
    """By readline's own function for files where ours has none."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    code = f"source ./outvote; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _outvote; "
    code += f"echo \"${{COMPREPLY[@]:-$(compgen -f -- '{words[-1]}')}}\""
    command = [program("bash"), "--norc", "-c", code]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(told.stdout.split()) == expected


@pytest.mark.parametrize(("line", "expected"), ASKED)
def test_fish_completes(line: str, expected: set[str], installed: Path) -> None:
    """It looks for the completion of a command that it finds, and of no other."""
    found = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    home = {"XDG_CONFIG_HOME": str(installed), "HOME": str(installed)}
    env = {**os.environ, **home, "PATH": found}
    command = [program("fish"), "-c", f"complete -C '{line}'"]
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert {row.partition("\t")[0] for row in told.stdout.splitlines()} == expected


@pytest.fixture
def zsh(installed: Path) -> Iterator[pexpect.spawn[str]]:
    (installed / ".zshrc").write_text(f"fpath=({installed} $fpath)\nPS1='> '\n{SHOWN}")
    env = {**os.environ, "ZDOTDIR": str(installed), "TERM": "dumb", "HOME": str(installed)}
    arguments = ["--no-globalrcs", "-i"]
    begun = pexpect.spawn(program("zsh"), arguments, env=env, encoding="utf-8", timeout=30)
    begun.expect("> ")
    yield begun
    begun.close(force=True)


def test_zsh_completes(zsh: pexpect.spawn[str]) -> None:
    """Keys are pressed: Tab, and one that shows the line."""
    for line, expected in ASKED:
        zsh.send(f"{line}\t")
        if len(expected) == 1:
            zsh.send("\x18")
            zsh.expect_exact(f"<{line.rpartition(' ')[0]} {min(expected)} >")
            continue
        left = set(expected)
        while left:
            found = sorted(left)
            left.discard(found[zsh.expect_exact(found)])
        zsh.send("\x18")
        zsh.expect_exact(f"<{line}")
