"""The house rules: who imports whom, where a file stands, how light the driver is.

By pattern, not by lists of names: a new wing, command or worker is held to them the day it comes.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tracemalloc
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import grimp
import numpy as np
import pytest

import outvote
from conftest import fake
from outvote.bench.reader import read_model
from outvote.commands.targets.job import HealthJob
from outvote.commands.targets.run import health
from outvote.dialects.keras.targets import BUILT_IN, DEFAULT
from outvote.judge.compare import Settings
from outvote.localize.layers import localize
from outvote.run.local import LocalPool
from outvote.targets.choose import choose

SOURCE = Path(outvote.__file__).parent
ROOT = SOURCE.parent.parent
MODULES = sorted(SOURCE.rglob("*.py"))
BACKEND_FILES = SOURCE / "dialects" / "keras" / "workers" / "keras3" / "backends"
BACKENDS = sorted(p.stem for p in BACKEND_FILES.glob("*.py") if p.stem[0] != "_")
FRAMEWORKS = frozenset(
    "keras tensorflow jax jaxlib torch openvino onnx onnxruntime theano mxnet h5py".split()
)
WING = re.compile(r"outvote\.dialects\.(\w+)")
WORKERS = re.compile(r"outvote\.dialects\.(\w+)\.workers\b")
# Words in -ing that name a thing: what is told, what arithmetic does, and families of layers.
NOUNS = frozenset("finding wording rounding".split()) | frozenset(
    "pooling merging sampling reshaping preprocessing padding cropping".split()
)


@cache
def imports() -> list[tuple[str, str]]:
    """Every import between our modules and of packages outside, also those inside functions."""
    graph = grimp.build_graph("outvote", include_external_packages=True, cache_dir=None)
    ours = sorted(name for name in graph.modules if name.split(".")[0] == "outvote")
    return [(name, to) for name in ours for to in graph.find_modules_directly_imported_by(name)]


def told(pairs: list[tuple[str, str]]) -> str:
    return "\n".join(f"{importer} imports {imported}" for importer, imported in pairs)


# Imports


def test_only_workers_import_a_framework() -> None:
    wrong = [(m, to) for m, to in imports() if to in FRAMEWORKS and not WORKERS.match(m)]
    assert not wrong, told(wrong)
    assert any(to in FRAMEWORKS for _, to in imports()), "the graph holds no framework at all"


def wing_of(module: str) -> str | None:
    found = WING.match(module)
    return found[1] if found else None


def test_nobody_imports_a_wing_but_itself() -> None:
    wrong = [(m, to) for m, to in imports() if wing_of(to) not in (None, wing_of(m))]
    assert not wrong, told(wrong)


def allowed_in_workers(importer: str, imported: str) -> bool:
    """Core, what all workers share, and the workers and nouns of the same wing.

    The reference is a target too, in this very environment: its worker imports the formulas.
    """
    own = f"outvote.dialects.{wing_of(importer)}"
    roots = ["outvote.core", "outvote.worker", f"{own}.workers", f"{own}.nouns"]
    if importer == f"{own}.workers.reference":
        roots += [f"{own}.reference", f"{own}.layers"]
    return any(imported == root or imported.startswith(f"{root}.") for root in roots)


def test_workers_import_core_worker_and_their_own_wing() -> None:
    """They run in other environments, where the rest of us and its needs may be missing."""
    inside = [
        (m, to)
        for m, to in imports()
        if (WORKERS.match(m) or m.startswith("outvote.worker")) and to.startswith("outvote")
    ]
    assert len({m for m, _ in inside}) > 20
    wrong = [(m, to) for m, to in inside if not allowed_in_workers(m, to)]
    assert not wrong, told(wrong)


def test_the_nouns_of_a_wing_stand_on_core_alone() -> None:
    inside = [(m, to) for m, to in imports() if ".nouns" in m and to.startswith("outvote")]
    wrong = [
        (m, to)
        for m, to in inside
        if not to.startswith(("outvote.core", f"outvote.dialects.{wing_of(m)}.nouns"))
    ]
    assert inside
    assert not wrong, told(wrong)


def test_the_shared_half_of_the_workers_knows_no_wing() -> None:
    wrong = [(m, to) for m, to in imports() if m.startswith("outvote.worker") and wing_of(to)]
    assert not wrong, told(wrong)


def test_the_driver_imports_no_worker() -> None:
    def is_worker(name: str) -> bool:
        return bool(WORKERS.match(name)) or name.startswith("outvote.worker")

    wrong = [(m, to) for m, to in imports() if is_worker(to) and not is_worker(m)]
    assert not wrong, told(wrong)


# Layout


def folders() -> list[Path]:
    """Every folder below the package that holds Python."""
    found = {path.parent for path in MODULES} - {SOURCE}
    return sorted(path.relative_to(SOURCE) for path in found)


def test_the_hall_holds_at_most_six_modules() -> None:
    hall = sorted(path.name for path in SOURCE.glob("*.py"))
    assert len(hall) <= 6, hall


def test_no_file_is_named_by_a_gerund() -> None:
    gerunds = [
        str(path.relative_to(SOURCE))
        for path in MODULES
        if path.stem.endswith("ing") and path.stem not in NOUNS
    ]
    assert not gerunds


def classes() -> Iterator[tuple[str, str]]:
    """Every public class at the top of a module: its name and the module's path."""
    for path in MODULES:
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(encoding="utf-8"), re.M):
            yield name, str(path.relative_to(SOURCE))


def test_no_class_name_is_defined_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name, path in classes():
        places[name].append(path)
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert not twice


def architecture() -> str:
    return (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_the_architecture_page_names_every_folder() -> None:
    """By its path, or a room by its own name."""
    words = set(re.findall(r"`([\w./-]+)`", architecture()))
    named = {word.removeprefix("src/outvote/").rstrip("/") for word in words}
    missing = [
        str(folder) for folder in folders() if str(folder) not in named and folder.name not in named
    ]
    assert not missing, f"ARCHITECTURE.md does not name {missing}"


def test_every_path_of_the_architecture_page_exists() -> None:
    paths = re.findall(r"`([a-z][\w-]*(?:/[\w.-]+)+|\w+\.py)`", architecture())
    assert len(paths) > 10
    missing = [p for p in paths if not any((base / p).exists() for base in (ROOT, SOURCE))]
    assert not missing


def test_every_command_has_its_options() -> None:
    rooms = [folder for folder in folders() if folder.parent == Path("commands")]
    assert len(rooms) > 8
    assert [room for room in rooms if not (SOURCE / room / "options.py").exists()] == []


# A light driver, and plug-ins that keep their contract


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split())


HELP = """
import outvote.testing.plugin
from outvote import commands
from outvote.cli import main
for command in ([], *([name] for name in commands.names())):
    try:
        main([*command, "--help"])
    except SystemExit:
        pass
"""


@pytest.mark.slow
def test_help_loads_nothing_heavy() -> None:
    loaded = loaded_after(HELP)
    assert "outvote.commands.pollution.options" in loaded
    assert not loaded & (FRAMEWORKS | {"numpy", "rich", "jinja2", "PIL", "starlette", "uvicorn"})


@pytest.mark.slow
def test_a_whole_check_loads_no_framework_into_the_driver(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    (tmp_path / "outvote.toml").write_text(
        '[targets.a]\nextends="fake"\n[targets.b]\nextends="fake"'
    )
    arguments = ["check", str(fake_model), "--data", str(fake_data), "--targets", "a,b"]
    arguments += ["--config", str(tmp_path / "outvote.toml"), "--out", str(tmp_path / "out")]
    loaded = loaded_after(f"from outvote.cli import main; assert main({arguments!r}) == 0")
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
    ours = [t for t in BUILT_IN.values() if t.backend == name and t.worker == "keras3"]
    assert offered == {target.mode for target in ours}


def test_every_backend_has_a_target_and_every_target_a_backend() -> None:
    modern = [t for t in BUILT_IN.values() if t.worker == "keras3"]
    assert {t.backend for t in modern} == set(BACKENDS)


def test_defaults_leave_out_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "tensorflow" else object()
    )
    assert [t.name for t in choose(None, BUILT_IN, DEFAULT)] == ["jax", "torch", "openvino"]


@pytest.mark.frameworks
def test_a_target_that_cannot_start_is_named_with_its_reason(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("raise RuntimeError('this patch is broken')")
    broken = replace(BUILT_IN["openvino"], name="broken", setup=script)
    (row,) = health(HealthJob((broken,)))
    assert row.state == "broken"
    assert "this patch is broken" in row.remedy


@pytest.mark.frameworks
def test_a_healthy_target_says_its_versions() -> None:
    (row,) = health(HealthJob((BUILT_IN["openvino"],)))
    assert (row.state, row.precision) == ("ok", "inference f32")
    assert "keras 3" in row.versions


@pytest.mark.slow
def test_the_driver_holds_only_what_later_layers_need(tmp_path: Path) -> None:
    """40 layers of 160 kB states: 19 MB for three targets if all were held."""
    layers = [
        {
            "name": f"l{i}",
            "kind": "Scale",
            "inputs": [f"l{i - 1}" if i else "x"],
            "config": {"by": 1.0001},
        }
        for i in range(40)
    ]
    path = tmp_path / "deep.json"
    size = 40_000
    data = {
        "class_name": "FakeModel",
        "input": [None, size],
        "output": [None, size],
        "layers": layers,
    }
    path.write_text(json.dumps(data))
    with LocalPool([fake("a"), fake("b"), fake("c", "lie:l20")]) as pool:
        pool.start()
        model, _ = read_model(pool, path, None)
        x = np.random.default_rng(0).normal(size=(1, size)).astype("float32")
        tracemalloc.start()
        found = localize(pool, model, [x], "a", dict(pool.targets), Settings())
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert [fault.layer.name for fault in found.faults] == ["l20"]
    assert peak < 6 << 20
