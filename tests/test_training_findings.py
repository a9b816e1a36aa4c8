"""docs/findings-training: every script is linked, needs nothing of ours, and one is run."""

from __future__ import annotations

import ast
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from test_ground_truth import WORD, told

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "findings.md").read_text(encoding="utf-8")
SCRIPTS = sorted((DOCS / "findings-training").glob("*.py"))
ALLOWED = {"jax", "keras", "numpy", "os", "subprocess", "sys", "tensorflow", "torch"}


def test_scripts_are_there_each_linked_and_import_nothing_of_ours() -> None:
    linked = re.findall(r"\]\((findings-training/[\w-]+\.py)\)", PAGE)
    assert sorted(linked) == [f"findings-training/{path.name}" for path in SCRIPTS]
    for path in SCRIPTS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert {item.name for item in node.names} <= ALLOWED, path
            assert not isinstance(node, ast.ImportFrom), path


@pytest.mark.frameworks
def test_a_drawn_script_tells_targets_apart() -> None:
    script = random.Random(WORD).choice(SCRIPTS)
    runs = {
        name: subprocess.run(
            [sys.executable, script],
            env={**os.environ, "KERAS_BACKEND": name},
            capture_output=True,
            text=True,
            check=False,
        )
        for name in ("tensorflow", "jax", "torch")
    }
    codes = {name: run.returncode for name, run in runs.items()}
    said = told(WORD, [script.name, str(codes), *(run.stderr[-300:] for run in runs.values())])
    assert set(codes.values()) == {0, 1}, said
