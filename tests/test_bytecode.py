"""Workers keep bytecode of libraries that have none, where nobody may write it beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from outvote.core.target import Target
from outvote.run.process import _environment, _has_bytecode

TARGET = Target("t", "keras", "fake", "t", packages=("odd_library",))


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "odd_library"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    _has_bytecode.cache_clear()
    return folder


def test_a_library_without_bytecode_gets_it_in_the_cache(library: Path) -> None:
    environment = _environment(TARGET)
    assert "PYTHONDONTWRITEBYTECODE" not in environment
    assert Path(environment["PYTHONPYCACHEPREFIX"]).parts[-2:] == ("outvote", "bytecode")


def test_a_library_that_has_it_is_left_alone(library: Path) -> None:
    compiled = library / "__pycache__" / f"__init__.{sys.implementation.cache_tag}.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"")
    environment = _environment(TARGET)
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"
    assert "PYTHONPYCACHEPREFIX" not in environment


def test_where_bytecode_is_written_nothing_changes(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert "PYTHONPYCACHEPREFIX" not in _environment(TARGET)
