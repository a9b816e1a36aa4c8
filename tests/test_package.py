"""What is installed: the wheel is whole and works alone; the doctor tells; the site is built."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from extras import EXTRAS, ROOT, included
from outvote.cli import main
from outvote.config import load_config
from outvote.core.version import VERSION
from outvote.targets.choose import known_targets
from test_toy_dialect import NODES

SOURCE = ROOT / "src" / "outvote"


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"]["attr"].endswith(".VERSION")
    told = subprocess.run(
        [sys.executable, "-m", "outvote", "--version"], capture_output=True, text=True, check=True
    )
    assert told.stdout == f"outvote {VERSION}\n"


def test_the_doctor_tells_what_works_and_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tables = [f'[targets.{n}]\nextends = "fake"\nlibrary = "{n}"\n' for n in "ab"]
    Path("outvote.toml").write_text("".join(tables))
    assert main(["doctor", "--targets", "a,b", "--quiet"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"outvote {VERSION}, Python 3.")
    assert "nobody can say which is wrong; a third one can outvote" in told
    assert (
        next(line for line in told.splitlines() if "READY" in line)
        == "READY  libraries that can be compared: a, b"
    )
    assert main(["doctor", "--targets", "a", "--quiet"]) == 1
    assert "NOT READY" in capsys.readouterr().out


@pytest.mark.slow
def test_the_wheel_holds_every_file(wheel: Path) -> None:
    assert wheel.name == f"outvote-{VERSION}-py3-none-any.whl"
    held = set(zipfile.ZipFile(wheel).namelist())
    ours = {
        f"outvote/{path.relative_to(SOURCE).as_posix()}"
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert len(ours) > 300
    assert not ours - held
    assert not [name for name in held if name.startswith("tests")]


@pytest.mark.slow
def test_the_wheel_alone_checks_a_model_on_numpy(wheel: Path, tmp_path: Path) -> None:
    """In an empty environment, with what outvote itself needs and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    pinned = str(ROOT / "constraints.txt")
    install = [python, "-m", "pip", "install", "--quiet", "-c", pinned, str(wheel)]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    env |= {"OUTVOTE_DIALECTS": str(ROOT / "tests" / "dialects")}
    subprocess.run(install, check=True, env=env)
    inputs = [{"name": "x", "shape": [None, 3, 4], "batch": 0}]
    inputs += [{"name": "scale", "shape": [6], "batch": None}]
    model = {"inputs": inputs, "nodes": NODES, "outputs": ["soft", "t"]}
    (tmp_path / "model.toy").write_text(json.dumps(model))

    def outvote(*arguments: str, code: int = 0) -> str:
        command = [python, "-m", "outvote", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    assert "CONSISTENT  3 targets agree on 8 inputs." in outvote("check", "model.toy", "--quiet")
    for name in ("report.html", "report.md", "result.json", "junit.xml", "results.sarif"):
        assert (tmp_path / "outvote-out" / name).is_file()
    told = outvote("doctor", "--quiet")
    assert "toy-a" in told
    assert "run: pip install 'outvote[torch]'" in told
    assert "in tests: neither pytest nor hypothesis" in told
    script = tmp_path / "venv" / "bin" / "outvote"
    assert subprocess.run([script, "--version"], capture_output=True, text=True, env=env).stdout


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    reference = (tmp_path / "api" / "index.html").read_text()
    for name in ("check", "fuzz", "assert_consistent", "models", "Result"):
        assert f">{name}</span>" in reference
    index = json.loads((tmp_path / "search" / "search_index.json").read_text())
    assert len(index["docs"]) > 200


def test_every_target_names_an_extra_that_brings_what_it_needs() -> None:
    def brought(extra: str) -> set[str]:
        """Packages, also through other extras."""
        inner = (requirement.name for name in included(extra) for requirement in EXTRAS[name])
        return {name.replace("_", "-") for name in inner}

    released = [t for t in known_targets().values() if t.packages and not t.requirements]
    assert len(released) > 10
    aliases = {"cv2": "opencv-python-headless", "onnx_ir": "onnx-ir"}
    for target in released:
        needed = {aliases.get(name, name) for name in target.packages}
        found = {name for extra in target.extra.split(",") for name in brought(extra)}
        assert needed <= found, f"{target.name}: outvote[{target.extra}]"


def test_what_the_demo_installs_brings_every_target_that_it_names() -> None:
    makefile = (ROOT / "Makefile").read_text()
    demo = makefile.partition("\ndemo:")[2].partition("\n\n")[0]
    (installed,) = re.findall(r"-e '\.\[([\w,]+)\]'", makefile.partition("\n.venv/demo:")[2])[:1]
    brought = {extra for name in installed.split(",") for extra in included(name)}
    known = known_targets(load_config(ROOT / "examples" / "outvote.toml"))
    named = {name for names in re.findall(r"--targets (\S+)", demo) for name in names.split(",")}
    assert len(named) > 5
    assert {n for n in named if not set(known[n].extra.split(",")) <= brought} == set()
