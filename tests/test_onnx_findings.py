"""docs/findings-onnx.md: every row has its scripts, which need nothing of ours."""

from __future__ import annotations

import ast
import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "findings-onnx.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if "](findings-onnx/" in line]
ALLOWED = {"os", "resource", "runpy", "signal", "subprocess", "sys", "numpy"} | {
    *("onnx", "onnxruntime", "cv2", "openvino")
}


def test_every_row_links_scripts_and_the_text_of_its_operators() -> None:
    assert len(ROWS) > 40
    for row in ROWS:
        kinds = re.findall(r"\[`(\w+)`\]\(findings-onnx/", row)
        assert kinds, row
        for kind in kinds:
            assert f"https://onnx.ai/onnx/operators/onnx__{kind}.html" in row


def test_scripts_are_there_each_linked_and_import_nothing_of_ours() -> None:
    linked = set(re.findall(r"\]\((findings-onnx/[\w-]+\.py)\)", PAGE))
    there = {f"findings-onnx/{path.name}" for path in (DOCS / "findings-onnx").glob("*.py")}
    assert linked == there
    for name in linked:
        tree = ast.parse((DOCS / name).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert {item.name.split(".")[0] for item in node.names} <= ALLOWED, name
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] in ALLOWED, name


def test_one_cause_is_one_row() -> None:
    causes = [(row.split(" | ")[0], row.split(" | ")[2]) for row in ROWS]
    assert len(set(causes)) == len(causes)
