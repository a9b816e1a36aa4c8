"""`repro.py` of a finding between versions: whoever gets it reads the same targets out of it."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import fake
from outvote.config import Config, load_config
from outvote.core.target import Target
from outvote.dialects.keras.targets import BUILT_IN
from outvote.findings import versions
from outvote.targets.choose import find_target, known_targets
from outvote.targets.names import split_names

SAME = ("dialect", "worker", "backend", "mode", "requirements", "setup", "env", "library")
NAMES = (
    "torch",
    "tensorflow:xla",
    "keras==3.9.0/torch",
    "keras==3.14.1,jax==0.6.2/jax:jit",
    "theano",
    "keras==2.2.4/theano",
    "onnxruntime==1.20.1",
    "onnxruntime:all==1.19.2",
)


def targets_in(script: str) -> list[str]:
    """What the script puts behind --targets, read by who is asked to run it."""
    (named,) = (
        node
        for node in ast.parse(script).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TARGETS"
    )
    return split_names(",".join(ast.literal_eval(named.value)))


def read_again(targets: list[Target], folder: Path) -> list[Target]:
    """The targets as another machine has them, from script and file alone."""
    path = folder / "outvote.toml"
    path.write_text(versions.config(targets), encoding="utf-8")
    known = known_targets(load_config(path))
    return [find_target(name, known) for name in targets_in(versions.script("t", targets))]


def parts(target: Target) -> dict[str, Any]:
    return {part: getattr(target, part) for part in SAME}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_says_all_needs_no_table(name: str, tmp_path: Path) -> None:
    target = find_target(name, known_targets())
    assert versions.config([target]) == ""
    assert read_again([target], tmp_path) == [target]


def own_targets(folder: Path) -> list[Target]:
    """Targets that only an outvote.toml can tell of, with names that users give."""
    setup = folder / 'mend "it".py'
    setup.write_text("")
    config: dict[str, dict[str, Any]] = {
        "patched": {"extends": "torch", "setup": setup.name},
        "old": {"extends": "jax", "requirements": ["keras==3.9.0"], "library": "old jax"},
        "a.b=c": {"extends": "fake", "env": {"OUTVOTE_FAKE": 'lie:"d2"', "X-Y": "ö\\n"}},
        "night/ly": {"extends": "tensorflow", "mode": "xla"},
    }
    known = known_targets(Config(folder, config, folder / "mine.toml", named=True))
    return [
        *(known[name] for name in config),
        find_target("keras==3.9.0/patched", known),
        find_target("keras==3.9.0,jax==0.6.2/old", known),
    ]


def test_targets_of_a_file_come_back_with_all_that_they_are(tmp_path: Path) -> None:
    targets = own_targets(tmp_path)
    again = read_again(targets, tmp_path)
    assert [parts(target) for target in again] == [parts(target) for target in targets]
    assert len({target.name for target in again}) == len(targets)


def test_files_of_the_user_are_found_from_any_folder(tmp_path: Path) -> None:
    (patched, *_) = own_targets(tmp_path)
    relative = replace(patched, setup=Path("setup.py"), python=Path("bin/python"))
    told = versions.config([relative])
    assert f'setup = "{Path("setup.py").absolute()}"' in told
    assert f'python = "{Path("bin/python").absolute()}"' in told


def test_an_interpreter_is_named_only_where_no_requirement_builds_one(tmp_path: Path) -> None:
    """Environments are built anew elsewhere; what a user named has no other way to be found."""
    python = tmp_path / "python"
    python.write_text("")
    own = replace(fake("mine"), python=python)
    assert f'python = "{python}"' in versions.config([own])
    built = replace(own, requirements=("keras==3.9.0",))
    assert "python = " not in versions.config([built])
    (again,) = read_again([own], tmp_path)
    assert again.python == python


def test_a_target_that_is_not_what_its_name_says_gets_another(tmp_path: Path) -> None:
    """As a program may call one: the file may not change what `torch` means."""
    changed = replace(BUILT_IN["torch"], env={**BUILT_IN["torch"].env, "OMP_NUM_THREADS": "7"})
    (again,) = read_again([changed], tmp_path)
    assert again.name == "own torch"
    assert parts(again) == parts(changed)


def test_the_script_is_python_whatever_targets_and_titles_are_called(tmp_path: Path) -> None:
    hostile = 'x"""\nimport os; os.abort() #\\'
    script = versions.script("plain", [replace(fake("a"), name=hostile), fake("b")])
    assert targets_in(script) == ["x import os os.abort", "b"]
    assert "import os; os.abort()" not in script


def test_who_has_versions() -> None:
    plain, old = BUILT_IN["torch"], find_target("keras==3.9.0/torch", known_targets())
    assert versions.has_versions([plain, old])
    assert not versions.has_versions([plain])
