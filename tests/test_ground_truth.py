"""The table of planted faults (benchmarks/ground_truth.py) keeps what it promises."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    from ground_truth_faults import FAULTS, SCRIPTS, Fault
finally:
    sys.path.remove(str(BENCHMARKS))

FAMILIES = set("formula geometry state dtype corner size compiled parameter memory".split())
PLANTED = [fault for fault in FAULTS if not fault.is_control]


def test_every_family_and_backend_has_its_faults() -> None:
    assert {fault.family for fault in PLANTED} == FAMILIES
    per_backend = Counter(fault.backend for fault in PLANTED)
    assert set(per_backend) == {"tensorflow", "jax", "torch"}
    assert min(per_backend.values()) >= 12
    assert sum(fault.campaign is not None for fault in PLANTED) >= 8


def test_scripts_and_rows_belong_together() -> None:
    assert sorted(p.stem for p in SCRIPTS.glob("*.py")) == sorted(f.name for f in FAULTS)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_script_says_what_it_plants_and_plants_it(fault: Fault) -> None:
    tree = ast.parse(fault.script.read_text(encoding="utf-8"))
    said = ast.get_docstring(tree)
    assert said is not None
    assert said.startswith("No fault:") == fault.is_control
    attributes = [
        target
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    ]
    assert attributes, "nothing of the library is replaced"
    compile(fault.model, fault.name, "eval")
    compile(fault.data or "0", fault.name, "eval")
