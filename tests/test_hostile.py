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
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hostile
from hostile import Hostile
from outvote.cli import main
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.local import LocalPool
from outvote.run.process import Limits

pytestmark = pytest.mark.frameworks
FAMILIES = (
    *("names", "code", "wrong_types", "shapes", "outputs", "archives", "containers"),
    *("architectures", "legacy", "paths"),
)
GIB = 1 << 20  # in the KiB of getrusage
Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
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
    pool: LocalPool,
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


def test_no_command_starts_anything_for_a_broken_file(
    files: dict[str, list[Hostile]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All of them look at their files first, in the same way."""

    def started(*arguments: object, **more: object) -> None:
        raise AssertionError("workers were made before the file was looked at")

    monkeypatch.setattr(LocalPool, "__init__", started)
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", x=np.zeros((4, 4), "float32"), y=np.zeros(4, "int64"))
    titles = ("a bomb", "encrypted", "100 bytes", "a crowd", "a member ../evil")
    broken = [item for item in files["archives"] if item.title.split(": ")[1] in titles]
    assert len(broken) == len(titles)
    for item in broken:
        model = str(item.path)
        two = ("--targets", "numpy,torch")
        for arguments in (
            ["check", model, *two],
            ["fuzz", model, *two, "--budget", "1"],
            ["localize", model, *two],
            ["nan", model, "--target", "numpy"],
            ["explore", model, model, "--data", "data.npz", "--target", "torch"],
            ["coverage", model, "--data", "data.npz", "--target", "torch"],
            ["pollution", model, model, "--data", "data.npz", "--target", "torch"],
            ["bisect", model, "--target", "torch", "--from", "3.8.0", "--to", "3.9.0"],
        ):
            code = main(arguments)
            problem = complaint(item, code, capsys.readouterr().err)
            assert problem is None, (arguments[0], problem)


def test_hostile_data_is_refused_with_one_sentence(
    files: dict[str, list[Hostile]], run: Run, tmp_path: Path
) -> None:
    plain = next(item for item in files["legacy"] if item.title == "legacy: a plain one")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (tmp_path / "data").mkdir()
    count = 0
    for item in hostile.data_files(tmp_path / "data"):
        problem = complaint(item, *run(plain, "--data", str(item.path)))
        assert problem is None, (item.title, problem)
        count += 1
    assert count > 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GIB


class Tags(HTMLParser):
    """What a page is made of: its elements and their attributes, without any text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


TOML = """
[targets.planted]
extends = "numpy"
library = "planted"
setup = "{script}"
"""
FAULT = """
import keras
original = keras.layers.Dense.call
keras.layers.Dense.call = lambda self, *given, **more: original(self, *given, **more) * 1.25 + 0.5
"""
QUICK = ("--minimise", "1", "--confirm", "0")
WRITTEN = (
    *("code", "a docstring's end", "a bad escape", "a mark of our template", "jinja", "a table"),
    *("the end of CDATA", "a fence", "a title", "a line separator", "right to left"),
)


@pytest.fixture
def reported(
    pool: LocalPool, run: Run, tmp_path: Path
) -> Callable[[str], tuple[Path, dict[str, Any]]]:
    """A check that ends with a finding in a layer of that name; its folder and result."""
    script = tmp_path / "fault.py"
    script.write_text(FAULT)
    (tmp_path / "outvote.toml").write_text(TOML.format(script=script))
    if "planted" not in pool.targets:  # and JAX: PyTorch takes no dots in names
        planted = replace(BUILT_IN["numpy"], name="planted", library="planted", setup=script)
        for target in (planted, BUILT_IN["jax"]):
            pool.add(target)
            assert pool.start([target.name])[target.name].ok

    def check(text: str) -> tuple[Path, dict[str, Any]]:
        path = tmp_path / "model.keras"
        path.write_bytes(hostile.archive(hostile.named(text, f"x{text}")))
        item = Hostile("", path, refused=False)
        code, err = run(item, "--targets", "planted,numpy,jax", *QUICK)
        assert code == 1, err
        return tmp_path / "out", json.loads((tmp_path / "out" / "result.json").read_text())

    return check


def shape_of(out: Path) -> tuple[list[object], list[str]]:
    """The elements of the page, and what begins each line of the text."""
    page = Tags((out / "report.html").read_text(encoding="utf-8")).found
    text = (out / "report.md").read_text(encoding="utf-8").splitlines()
    return list(page), [line[:3] for line in text if line[:1] in "#|`-<"]


def test_what_is_written_of_a_hostile_model_is_what_is_written_of_a_plain_one(
    reported: Callable[[str], tuple[Path, dict[str, Any]]], tmp_path: Path
) -> None:
    """The same elements, headings and rows; files of every format can be read; nothing is run."""
    canary = tmp_path / "canary"
    out, _ = reported("plain")
    page, text = shape_of(out)
    for what in WRITTEN:
        name = hostile.TEXTS[what].replace("CANARY", str(canary)).replace("/", "\u2215")
        out, result = reported(name)
        (finding,) = result["findings"]
        assert finding["accused"] == "planted"
        assert finding["layer"] == name
        assert shape_of(out) == (page, text), what
        ET.parse(out / "junit.xml")
        json.loads((out / "results.sarif").read_text())
        (repro,) = (out / "findings").glob("*/repro.py")
        ast.parse(repro.read_text(encoding="utf-8"))
    done = subprocess.run(
        [sys.executable, repro], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    told = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()}
    assert told == {"planted": "WRONG:", "numpy": "ok:", "jax": "ok:"}
    assert not canary.exists()


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from outvote.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "title",
    [
        *("archives: a bomb", "archives: an overlapping bomb", "archives: a lie about sizes"),
        *("archives: a crowd", "archives: a long configuration", "architectures: a long one"),
        "architectures: deep objects",
    ],
)
def test_a_driver_of_one_gibibyte_refuses_it(
    title: str, files: dict[str, list[Hostile]], tmp_path: Path
) -> None:
    item = next(item for family in files.values() for item in family if item.title == title)
    weights = ["--weights", str(item.weights)] if item.weights else []
    command = ["check", str(item.path), *weights, "--targets", "numpy,torch"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *command],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert complaint(item, done.returncode, done.stderr) is None, done.stderr


@pytest.mark.parametrize(
    "title", ["code: TorchModuleWrapper in a model", "names: model: a docstring's end"]
)
def test_the_same_from_the_command_line(
    title: str, files: dict[str, list[Hostile]], tmp_path: Path
) -> None:
    item = next(item for family in files.values() for item in family if item.title == title)
    command = ["check", str(item.path), "--targets", "numpy,torch", "--out", "out"]
    done = subprocess.run(
        [sys.executable, "-m", "outvote", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert complaint(item, done.returncode, done.stderr) is None, done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"out"}
    assert not (item.path.parent.parent / "canary").exists()
