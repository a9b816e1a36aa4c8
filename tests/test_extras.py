"""Extras, one by one: the wheel with each of them, and nothing else, does what the extra is for."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import extras
from extras import EXTRAS, included
from onnx_models import constant, floats, model, saved, value
from outvote.core.target import Target
from outvote.targets.choose import known_targets
from served import serving

pytestmark = pytest.mark.frameworks

TARGETS = [target for target in known_targets().values() if target.extra]
SLOW = {"compiles_slowly", "compiles_for_minutes"}
OTHERS = {"dev", "ray", "serve", "testing", "zoo"}  # what brings no target
MODEL = "model = keras.Sequential([keras.Input((6,)), layers.Dense(4), layers.Softmax()])"


def brought(extra: str) -> list[Target]:
    """Targets that have all they need."""
    return [target for target in TARGETS if set(target.extra.split(",")) <= included(extra)]


def own(extra: str) -> list[Target]:
    """Those that no smaller extra brings."""
    inner = [target for name in included(extra) - {extra} for target in brought(name)]
    return [target for target in brought(extra) if target not in inner]


def compared(extra: str, dialect: str) -> list[str]:
    """One for each set of packages that its own targets need; if that is one, with another mode."""
    ours = [target for target in own(extra) if target.dialect == dialect]
    here = [target for target in ours if not target.device]
    quick = [target for target in here if not target.costs & SLOW] or here
    each = list({(target.library, target.packages): target for target in reversed(quick)}.values())
    return [target.name for target in (each if len(each) > 1 else quick[:2])]


@pytest.fixture(scope="module")
def model_of(
    tmp_path_factory: pytest.TempPathFactory, keras_file: Callable[..., Path]
) -> Callable[[str], Path]:
    """A small model file of a dialect."""

    def made(dialect: str) -> Path:
        folder = tmp_path_factory.mktemp(dialect)
        if dialect == "keras":
            return keras_file(MODEL)
        if dialect == "onnx":
            nodes = [onnx.helper.make_node("Gemm", ["x", "w"], ["y"], name="gemm")]
            ends = [value("x", ["n", 3])], [value("y", ["n", 2])]
            return saved(model(nodes, *ends, [constant("w", floats(np.eye(3, 2)))]), folder)
        import torch_programs

        return torch_programs.archive("conv", folder)

    return made


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
def test_the_targets_of_an_extra_start_and_check_a_model(
    extra: str, wheel: Path, model_of: Callable[[str], Path], tmp_path: Path
) -> None:
    python = extras.environment(wheel, {extra}, tmp_path / "venv")
    dialects = {target.dialect for target in own(extra)}
    assert dialects
    for dialect in dialects:
        first, *more = compared(extra, dialect)
        (tmp_path / "venv" / "outvote.toml").write_text(f'[targets.twin]\nextends = "{first}"\n')
        names = [first, *more] if more else [first, "twin"]
        command = ("check", str(model_of(dialect)), "--targets", ",".join(names), "--quiet")
        told = run(python, "outvote", *command, "--minimise", "0")
        assert f"CONSISTENT  {len(names)} targets agree" in told, told


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
