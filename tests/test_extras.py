"""Extras, one by one: the wheel with each of them, and nothing else, does what the extra is for."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import extras
from extras import EXTRAS, included
from outvote.core.target import Target
from outvote.targets.choose import known_targets
from served import serving

pytestmark = pytest.mark.frameworks

TARGETS = [target for target in known_targets().values() if target.extra]
SLOW = {"compiles_slowly", "compiles_for_minutes"}
OTHERS = {"all", "dev", "ray", "serve", "testing", "zoo"}  # no target, or what others bring


def brought(extra: str) -> list[Target]:
    """Targets that have all they need."""
    return [target for target in TARGETS if set(target.extra.split(",")) <= included(extra)]


def own(extra: str) -> list[Target]:
    """Those that no smaller extra brings."""
    inner = [target for name in included(extra) - {extra} for target in brought(name)]
    return [target for target in brought(extra) if target not in inner]


def chosen(extra: str) -> list[str]:
    """One for each dialect and each set of packages that its own targets need."""
    here = [target for target in own(extra) if not target.device]
    quick = [target for target in here if not target.costs & SLOW] or here
    each = {(target.dialect, target.packages): target for target in reversed(quick)}
    return [target.name for target in each.values()]


def run(python: Path, *arguments: str) -> str:
    """What a command prints that is run with this interpreter, in the folder of its environment."""
    hidden = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [str(python), "-m", *arguments]
    folder = python.parent.parent
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("extra", [name for name in EXTRAS if name not in OTHERS])
def test_the_targets_of_an_extra_start_and_run_a_model(
    extra: str, wheel: Path, tmp_path: Path
) -> None:
    python = extras.environment(wheel, {extra}, tmp_path / "venv")
    names = chosen(extra)
    assert names
    told = run(python, "outvote", "targets", "--targets", ",".join(names))
    for name in names:
        assert re.search(rf"│ {re.escape(name)} +│ ok ", told), told


def test_all_that_is_needed_comes_with_the_extra_of_everything(wheel: Path, tmp_path: Path) -> None:
    """What its targets compute is what all other tests are about: pip finds nothing missing."""
    assert own("all")
    extras.environment(wheel, {"all"}, tmp_path / "venv")


def test_the_extra_for_tests_brings_the_fixture_and_the_strategies(
    wheel: Path, tmp_path: Path
) -> None:
    python = extras.environment(wheel, {"testing"}, tmp_path / "venv")
    test = "import numpy as np\nfrom outvote import strategies\n\ndef test_it(outvote):\n"
    test += "    outvote.assert_consistent([np.tanh, np.tanh], inputs=np.ones(3, 'float32'))\n"
    (tmp_path / "venv" / "test_mine.py").write_text(test)
    assert "1 passed" in run(python, "pytest", "test_mine.py")


def test_the_extra_for_the_workbench_serves(wheel: Path, tmp_path: Path) -> None:
    python = extras.environment(wheel, {"serve"}, tmp_path / "venv")
    with serving(tmp_path, python=python, cwd=tmp_path) as served:
        assert "No command has written anything here yet" in served.get()[1]
        assert served.get("assets/serve.css")[0] == 200


def test_the_extra_for_the_zoo_brings_the_digits(wheel: Path, tmp_path: Path) -> None:
    """A library that trains is asked for beside it."""
    python = extras.environment(wheel, {"jax", "zoo"}, tmp_path / "venv")
    command = ("zoo", "train", "residual-mlp", "--epochs", "1", "--count", "64", "--quiet")
    run(python, "outvote", *command)
    assert (tmp_path / "venv" / "zoo" / "residual-mlp.keras").is_file()
