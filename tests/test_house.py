"""The house rules: a light driver, plug-ins that keep their contract, memory that stays bounded."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import outvote
from conftest import fake
from outvote.bench.reading import read_model
from outvote.commands.targets.run import describe_targets
from outvote.judge.compare import Settings
from outvote.localize.layers import localize
from outvote.run.local import Pool
from outvote.run.watch import silent
from outvote.targets.choose import BUILT_IN, choose

SOURCE = Path(outvote.__file__).parent
BACKEND_FILES = SOURCE / "dialects" / "keras" / "workers" / "keras3" / "backends"
BACKENDS = sorted(p.stem for p in (BACKEND_FILES).glob("*.py") if p.stem[0] != "_")
FRAMEWORKS = {"keras", "tensorflow", "jax", "torch", "openvino", "onnxruntime"}


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code",
    [
        "import outvote",
        "from outvote.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "from outvote.cli import main\ntry: main(['check', '--help'])\nexcept SystemExit: pass",
        "from outvote.cli import main\ntry: main(['bisect', '--help'])\nexcept SystemExit: pass",
    ],
)
def test_help_loads_nothing_heavy(code: str) -> None:
    assert not loaded_after(code) & (FRAMEWORKS | {"numpy", "rich", "jinja2", "PIL"})


def test_a_whole_check_loads_no_framework_into_the_driver(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    (tmp_path / "outvote.toml").write_text(
        '[targets.a]\nextends="fake"\n[targets.b]\nextends="fake"'
    )
    arguments = ["check", str(fake_model), "--data", str(fake_data), "--targets", "a,b"]
    arguments += ["--config", str(tmp_path / "outvote.toml"), "--out", str(tmp_path / "out")]
    loaded = loaded_after(f"from outvote.cli import main\nassert main({arguments!r}) == 0")
    assert "numpy" in loaded
    assert not loaded & FRAMEWORKS


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_keeps_the_contract(name: str) -> None:
    """Read, not imported: a backend file may only be imported inside its own worker."""
    tree = ast.parse((BACKEND_FILES / f"{name}.py").read_text())
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert {"before_import", "after_import", "precision", "no_gradients", "set_wide"} <= functions
    assigned = {
        t.id
        for n in tree.body
        if isinstance(n, ast.Assign)
        for t in n.targets
        if isinstance(t, ast.Name)
    }
    assert {"libraries", "modes"} <= assigned
    (modes,) = (
        n.value
        for n in tree.body
        if isinstance(n, ast.Assign)
        and isinstance(n.targets[0], ast.Name)
        and n.targets[0].id == "modes"
    )
    assert isinstance(modes, ast.Dict)
    offered = {key.value for key in modes.keys if isinstance(key, ast.Constant)}
    assert offered == {t.mode for t in BUILT_IN.values() if t.backend == name}


def test_every_backend_has_a_target_and_every_target_a_backend() -> None:
    assert {t.backend for t in BUILT_IN.values() if t.backend} == set(BACKENDS)


def test_defaults_leave_out_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "tensorflow" else object()
    )
    assert [t.name for t in choose(None, BUILT_IN)] == ["jax", "torch", "openvino"]


@pytest.mark.frameworks
def test_a_target_that_cannot_start_is_named_with_its_reason(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("raise RuntimeError('this patch is broken')")
    broken = replace(BUILT_IN["openvino"], name="broken", setup=script)
    (row,) = describe_targets({"broken": broken}, silent)
    assert row.state == "broken"
    assert "this patch is broken" in row.remedy


@pytest.mark.frameworks
def test_a_healthy_target_says_its_versions() -> None:
    (row,) = describe_targets({"openvino": BUILT_IN["openvino"]}, silent)
    assert (row.state, row.precision) == ("ok", "inference f32")
    assert "keras 3" in row.versions


def test_the_driver_holds_only_what_later_layers_need(tmp_path: Path) -> None:
    """400 layers of 400 kB states: 160 MB a target if all were held."""
    layers = [
        {
            "name": f"l{i}",
            "kind": "Scale",
            "inputs": [f"l{i - 1}" if i else "x"],
            "config": {"by": 1.0001},
        }
        for i in range(400)
    ]
    path = tmp_path / "deep.json"
    size = 100_000
    data = {
        "class_name": "FakeModel",
        "input": [None, size],
        "output": [None, size],
        "layers": layers,
    }
    path.write_text(json.dumps(data))
    with Pool([fake("a"), fake("b"), fake("c", "lie:l200")]) as pool:
        pool.start()
        model, _ = read_model(pool, path, None)
        x = np.random.default_rng(0).normal(size=(1, size)).astype("float32")
        tracemalloc.start()
        found = localize(pool, model, [x], "a", dict(pool.targets), Settings())
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert [fault.layer.name for fault in found.faults] == ["l200"]
    assert peak < 40 << 20
