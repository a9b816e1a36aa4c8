"""A workbench for tests: the real command in a process of its own, on folders that fakes wrote."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outvote.cli import main

TOML = """
[targets.a]
extends = "fake"
library = "a"
[targets.b]
extends = "fake"
library = "b"
[targets.liar]
extends = "fake"
library = "liar"
env = { OUTVOTE_FAKE = "lie:d2" }
"""


@dataclass(frozen=True)
class Served:
    """A workbench that answers."""

    address: str
    process: subprocess.Popen[str]

    def get(self, path: str = "", **headers: str) -> tuple[int, str]:
        return asked(self.address + path, headers)

    def post(self, path: str, body: bytes = b"{}", **headers: str) -> tuple[int, str]:
        return asked(self.address + path, {"x-outvote": "1", **headers}, body)


def asked(address: str, headers: dict[str, str], body: bytes | None = None) -> tuple[int, str]:
    """The status and the text of an answer."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(address, body, given)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@contextmanager
def serving(
    *folders: Path, config: Path | None = None, python: Path = Path(sys.executable), **more: Any
) -> Iterator[Served]:
    """`outvote serve` on these folders, until the block ends."""
    command = [str(python), "-m", "outvote", "serve", *map(str, folders)]
    command += ["--config", str(config)] if config else []
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, **more)
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/\S+/", line)
    assert found, f"{line!r}: {process.wait()}"
    try:
        yield Served(found[0], process)
    finally:
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[0]
        assert process.returncode == 0, said
        assert "outvote serve has ended" in said


def checked(model: Path, data: Path, folder: Path, *more: str) -> None:
    """A check in which one of three is outvoted."""
    assert _run("check", model, data, folder, "--fail-on", "never", *more) == 0


def bred(model: Path, data: Path, folder: Path, *more: str) -> None:
    """A small campaign on the same three."""
    assert _run("fuzz", model, data, folder, "--fail-on", "never", *more) == 0


def _run(command: str, model: Path, data: Path, folder: Path, *more: str) -> int:
    config = folder.parent / "outvote.toml"
    config.write_text(TOML)
    given = [command, str(model), "--data", str(data), "--targets", "a,b,liar", "--quiet"]
    return main([*given, "--config", str(config), "--out", str(folder), *more])
