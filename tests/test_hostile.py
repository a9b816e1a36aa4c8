"""Hostile files, through every reader and every writer: one sentence, or a check like any other.

Nothing that they carry is run, nothing outside `--out` is touched, and the driver stays small.
"""

from __future__ import annotations

import ast
import json
import os
import resource
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from html.parser import HTMLParser
from pathlib import Path

import pytest

import hostile
from hostile import Hostile
from outvote.cli import main
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.process import Limits

pytestmark = pytest.mark.frameworks
FAMILIES = (
    *("names", "code", "wrong_types", "shapes", "archives", "containers", "architectures"),
    *("legacy", "paths"),
)
GIB = 1 << 20  # in the KiB of getrusage
Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    limits = Limits(memory_bytes=4 << 30)
    with LocalPool([BUILT_IN[name] for name in ("numpy", "torch")], limits=limits) as made:
        for run in made.start().values():
            assert run.ok, run.message
        yield made


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Hostile]]:
    """All of them, by family; the canary would lie beside their folder."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "files").mkdir()
    found: dict[str, list[Hostile]] = {family: [] for family in FAMILIES}
    for item in hostile.models(folder / "files", folder / "canary"):
        found[item.title.partition(":")[0]].append(item)
    return found


@pytest.fixture
def run(
    pool: Pool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """`outvote check` in this process, with workers that are up; returns exit code and stderr."""
    monkeypatch.setattr("outvote.commands.check.run.LocalPool", lambda *a, **k: nullcontext(pool))
    monkeypatch.chdir(tmp_path)

    def check(item: Hostile, *more: str) -> tuple[int, str]:
        weights = ["--weights", str(item.weights)] if item.weights else []
        path = f"./{item.path}" if str(item.path).startswith("-") else str(item.path)
        try:
            code = main(
                ["check", path, *weights, "--targets", "numpy,torch", "--out", "out", *more]
            )
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, capsys.readouterr().err

    return check


def complaint(item: Hostile, code: int, err: str) -> str | None:
    """What is wrong with what became of a file; None: nothing."""
    said = [line for line in err.splitlines() if line.startswith("outvote: ")]
    if "Traceback" in err:
        return "a traceback"
    if item.refused != (code == 2) or code not in (0, 1, 2):
        return f"exit code {code}: {err[-400:]}"
    if item.refused and (len(said) != 1 or item.says not in said[0]):
        return f"said {said!r}, expected {item.says!r}"
    return None


def snapshot(*folders: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for folder in folders
        for path in folder.rglob("*")
    }


def test_there_are_enough_of_them(files: dict[str, list[Hostile]]) -> None:
    assert sum(map(len, files.values())) >= 200
    assert all(files[family] for family in FAMILIES)
    assert any(not item.refused for item in files["names"])


@pytest.mark.parametrize("family", FAMILIES)
def test_each_is_refused_with_one_sentence_or_checked(
    family: str, files: dict[str, list[Hostile]], run: Run, tmp_path: Path
) -> None:
    folder = files["names"][0].path.parent.parent
    before = snapshot(folder), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {}
    for item in files[family]:
        problem = complaint(item, *run(item))
        if problem is not None:
            found[item.title] = problem
    assert not found, json.dumps(found, indent=1)
    assert not (folder / "canary").exists(), "code was run"
    assert snapshot(folder) == before[0], "files were touched"
    assert {path.name for path in tmp_path.iterdir()} <= {"out"}
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before[1]
    assert grown < GIB, f"{grown:,} KiB"
