"""Every notebook of examples/ runs from its first cell to its last, and shows what it says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
# What the cells must have shown, in this order.
SHOWN = {
    "own_model": ["2 targets agree on 16 inputs", "<iframe srcdoc=", "bug patched norm"],
    "own_backend": ["mine", "<iframe srcdoc=", "ELU layer"],
    "own_tests": ["<iframe srcdoc=", "inputs,"],
}


def test_every_notebook_is_tested_and_kept_without_outputs() -> None:
    found = {path.stem: json.loads(path.read_text()) for path in EXAMPLES.glob("*.ipynb")}
    assert found.keys() == SHOWN.keys()
    for name, data in found.items():
        assert not any(cell.get("outputs") for cell in data["cells"]), name


def told(cell: Any) -> str:
    """All that a cell shows, as text and as HTML."""
    parts = []
    for output in cell.get("outputs", []):
        parts.append(output.get("text", ""))
        parts += [output.get("data", {}).get(kind, "") for kind in ("text/plain", "text/html")]
    return "\n".join(parts)


@pytest.mark.frameworks
@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat  # with all of Jupyter, which no other test needs
    from nbclient import NotebookClient

    shutil.copy(EXAMPLES / "faults" / "batchnorm_epsilon.py", tmp_path)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    shown = "\n".join(told(cell) for cell in notebook.cells)
    for piece in SHOWN[name]:
        before, found, shown = shown.partition(piece)
        assert found, f"{name} does not show {piece!r} after {before[-500:]!r}"
