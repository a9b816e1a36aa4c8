"""docs/findings-torch.md: every script is linked, needs nothing of ours, and some are run."""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from test_ground_truth import WORD, told

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "findings-torch.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if "](findings-torch/" in line]
SCRIPTS = sorted((DOCS / "findings-torch").glob("*.py"))
ALLOWED = {"sys", "numpy", "torch", "onnxruntime", "openvino"}


def test_scripts_are_there_each_linked_and_import_nothing_of_ours() -> None:
    linked = re.findall(r"\]\((findings-torch/[\w-]+\.py)\)", PAGE)
    assert sorted(linked) == [f"findings-torch/{path.name}" for path in SCRIPTS]
    for path in SCRIPTS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert {item.name for item in node.names} <= ALLOWED, path


def test_one_cause_is_one_row_that_says_what_upstream_knows() -> None:
    cells = [row.strip("| ").split(" | ") for row in ROWS]
    assert all(len(row) == 4 and all(row) for row in cells)
    causes = [(who, what) for who, _, what, _ in cells]
    assert len(set(causes)) == len(causes) > 20


@pytest.mark.frameworks
def test_a_drawn_script_shows_its_cause() -> None:
    script = random.Random(WORD).choice(SCRIPTS)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    said = told(WORD, [script.name, done.stdout, done.stderr[-500:]])
    assert done.returncode == 1, said
    assert done.stdout.startswith("WRONG"), said
