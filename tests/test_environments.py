"""Environments: made by pip from a folder of wheels, whole or not at all, once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outvote.cli import main
from outvote.core.errors import UsageError
from outvote.core.target import Target
from outvote.dialects.keras.targets import BUILT_IN, with_versions
from outvote.targets.environments import pip
from outvote.targets.environments.plan import Environment, plan
from outvote.targets.environments.provide import is_built, provide, yanked
from outvote.targets.environments.store import EnvironmentStore


def wheel(folder: Path, name: str, version: str, needs: str = "") -> Path:
    """A package of one module that says its version."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", f"__version__ = {version!r}\n")
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of made-up wheels; pip may look nowhere else, and the cache folder is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version in ("3.90.0", "3.91.0", "3.92.0", "3.93.0rc1"):
        wheel(folder, "keras", version)
    return folder


@pytest.fixture
def _unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wheels are unpacked by us, and an interpreter is a link: pip takes half a second for it."""

    def fill(environment: Environment, folder: Path, links: Sequence[str], tell: pip.Tell) -> str:
        if environment.python is not None:
            (folder / "bin").mkdir(parents=True)
            (folder / "bin" / "python").symlink_to(environment.python)
        for requirement in (part for stage in environment.stages for part in stage):
            name = requirement.replace("==", "-")
            for found in Path(links[0]).glob(f"{name}-*.whl"):
                zipfile.ZipFile(found).extractall(folder)
        return ""

    monkeypatch.setattr(pip, "fill", fill)


unpacked = pytest.mark.usefixtures("_unpacked")


def versioned(*requirements: str, name: str = "t") -> Target:
    return with_versions(BUILT_IN["jax"], requirements, name)


def seen_by(target: Target, code: str) -> str:
    """What a worker of the target would print: its interpreter, its folders first."""
    folders = [str(path) for path in target.path]
    program = f"import sys; sys.path[:0] = {folders!r}\n{code}"
    command = [str(target.python or sys.executable), "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_a_version_of_keras_is_an_overlay_on_the_installed_libraries(wheels: Path) -> None:
    """It is known, too, that this one was yanked."""
    name = "keras-3.91.0-py3-none-any.whl"
    page = wheels / "page.html"
    page.write_text(f'<a href="{name}" data-yanked="it was broken">{name}</a>')
    target = versioned("keras==3.91.0")
    (ready,) = provide([target], [page.as_uri()])
    assert yanked(target) == "it was broken"
    code = "import keras, filelock; print(keras.__version__, filelock.__file__)"
    version, installed = seen_by(ready, code).split()
    assert version == "3.91.0"
    assert installed.startswith(sys.prefix)
    (entry,) = EnvironmentStore().entries()
    assert (entry.label, entry.kind) == ("keras==3.91.0", "overlay")
    assert entry.megabytes < 1


@unpacked
def test_a_second_use_does_not_ask_pip(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = versioned("keras==3.91.0")
    assert not is_built(target)
    first = provide([target], [str(wheels)])
    assert is_built(target)
    monkeypatch.setattr(pip, "fill", lambda *a: pytest.fail("pip was asked again"))
    assert provide([target]) == first


@pytest.mark.slow
def test_another_package_makes_a_whole_environment_with_what_it_needs(wheels: Path) -> None:
    wheel(wheels, "needed", "1.0")
    wheel(wheels, "tiny", "2.0", needs="needed")
    base = replace(BUILT_IN["jax"], packages=())
    (ready,) = provide([with_versions(base, ("tiny==2.0",), "t")], [str(wheels)])
    code = "import tiny, needed, importlib.util as u\n"
    code += "print(tiny.__version__, needed.__version__, u.find_spec('rich'))"
    assert seen_by(ready, code) == "2.0 1.0 None"


def test_what_is_not_asked_for_stays_at_the_installed_version() -> None:
    environment, overlay = plan(versioned("jax==0.6.2"))
    assert overlay is None
    assert environment is not None
    (stage,) = environment.stages
    assert stage[0] == "jax==0.6.2"
    assert stage[1].startswith("keras==3.")


def test_the_key_tells_contents_apart() -> None:
    keys = set()
    for requirements in (("keras==3.9.0",), ("keras==3.9.1",), ("keras==3.9.0", "jax==0.6.2")):
        keys |= {e.key for e in plan(versioned(*requirements)) if e}
    assert len(keys) == 3
    assert plan(versioned("keras==3.9.0", name="other")) == plan(versioned("keras==3.9.0"))


def test_a_user_may_change_one_package_of_a_classic_environment() -> None:
    base = with_versions(BUILT_IN["tensorflow"], ("keras==2.1.4", "numpy==1.22.4"), "t")
    environment, overlay = plan(base)
    assert environment is not None
    assert "numpy==1.22.4" in environment.stages[0]
    assert "numpy==1.23.5" not in environment.stages[0]
    assert overlay is not None
    assert overlay.label == "keras==2.1.4"


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["keras==9.9.9", "nowhere==1.0"])
def test_what_cannot_be_had_is_one_sentence(wheels: Path, asked: str) -> None:
    with pytest.raises(UsageError) as told:
        provide([versioned(asked)], [str(wheels)])
    text = str(told.value)
    assert text.startswith(asked)
    assert "could not be installed: No matching distribution found for" in text
    assert "--find-links" in text
    assert "\n" not in text
    assert EnvironmentStore().entries() == []


def test_the_command_line_says_it_without_a_traceback(
    wheels: Path,
    fake_model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fill(environment: Environment, *more: Any) -> str:
        raise UsageError(f"{environment.label} could not be installed: there is none")

    monkeypatch.setattr(pip, "fill", fill)
    names = "keras==9.9.9/jax,keras==9.9.8/jax"
    command = ["check", str(fake_model), "--targets", names, "--find-links", str(wheels)]
    assert main(command) == 2
    assert "outvote: keras==9.9.9 could not be installed" in capsys.readouterr().err


@unpacked
def test_an_interrupted_build_leaves_nothing_that_passes_for_whole(
    wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = versioned("keras==3.91.0")

    def interrupted(environment: Any, folder: Path, *more: Any) -> str:
        (folder / "keras").mkdir(parents=True)
        (folder / "keras" / "__init__.py").write_text("half of it")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(pip, "fill", interrupted)
        with pytest.raises(KeyboardInterrupt):
            provide([target], [str(wheels)])
    assert not is_built(target)
    assert [path for path in EnvironmentStore().folder.iterdir() if path.is_dir()] == []
    (ready,) = provide([target], [str(wheels)])
    assert seen_by(ready, "import keras; print(keras.__version__)") == "3.91.0"


@unpacked
def test_what_a_killed_builder_left_is_cleared_away(wheels: Path) -> None:
    target = versioned("keras==3.91.0")
    (overlay,) = (e for e in plan(target) if e)
    left = EnvironmentStore().folder / f".{overlay.key}.999999999"
    left.mkdir(parents=True)
    torn = EnvironmentStore().folder / overlay.key  # a folder without its facts is not whole
    torn.mkdir()
    (torn / "junk").write_text("x")
    assert not is_built(target)
    provide([target], [str(wheels)])
    assert not left.exists()
    assert not (torn / "junk").exists()


@unpacked
def test_two_who_ask_at_once_build_once(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    fill = pip.fill

    def slow(*arguments: Any) -> str:
        built.append(1)
        time.sleep(0.3)
        return fill(*arguments)

    monkeypatch.setattr(pip, "fill", slow)
    target = versioned("keras==3.92.0")
    found: list[Any] = []
    ask: Callable[[], None] = lambda: found.append(provide([target], [str(wheels)]))  # noqa: E731
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert found[0] == found[1] == found[2]


@unpacked
def test_environments_are_listed_and_removed(
    wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    provide([versioned("keras==3.90.0"), versioned("keras==3.91.0")], [str(wheels)])
    first, second = (entry.key for entry in EnvironmentStore().entries())
    assert main(["targets", "--environments"]) == 0
    assert "keras==3.90.0" in capsys.readouterr().out
    assert main(["targets", "--remove", first]) == 0
    assert [entry.key for entry in EnvironmentStore().entries()] == [second]
    assert main(["targets", "--remove", first]) == 2
    assert "there is no environment" in capsys.readouterr().err
    assert main(["targets", "--remove", "all"]) == 0
    assert EnvironmentStore().entries() == []


@pytest.mark.slow
def test_releases_are_final_and_in_order(wheels: Path) -> None:
    assert pip.releases("keras", [str(wheels)]) == ["3.90.0", "3.91.0", "3.92.0"]


@unpacked
def test_an_environment_whose_interpreter_went_away_is_built_again(wheels: Path) -> None:
    wheel(wheels, "tiny", "2.0")
    base = replace(BUILT_IN["jax"], packages=())
    target = with_versions(base, ("tiny==2.0",), "t")
    (ready,) = provide([target], [str(wheels)])
    assert ready.python is not None
    shutil.rmtree(ready.python.parent)
    assert not is_built(target)
    provide([target], [str(wheels)])
    assert is_built(target)


def test_uv_is_used_where_pip_has_no_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(pip, "_PIP_FILES", ())
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    (overlay,) = (e for e in plan(versioned("keras==3.9.0")) if e)
    command = pip._command(overlay, tmp_path, overlay.stages[0], ["wheels"])
    assert command[:3] == ["/bin/uv", "pip", "install"]
    assert command[-4:] == ["--find-links", "wheels", "--no-deps", "keras==3.9.0"]
    monkeypatch.setenv("PIP_INDEX_URL", "somewhere")
    command = pip._command(overlay, tmp_path, overlay.stages[0], [])
    assert command[:3] == [sys.executable, "-m", "pip"]


def test_the_reason_is_what_pip_or_uv_said_last_and_clearest() -> None:
    lines = ["  × No solution found:", "  ╰─▶ Because there is no keras==9.9.9", "      it fails."]
    assert pip._reason(lines) == "because there is no keras==9.9.9 it fails."
    lines = ["Collecting a", "ERROR: Could not find a version", "ERROR: No matching distribution x"]
    assert pip._reason(lines) == "No matching distribution x"
    assert "ensurepip" in pip._reason(["/x/python: No module named pip"])
    assert pip._reason([]) == "it said nothing"
