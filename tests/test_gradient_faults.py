"""Planted faults of training (benchmarks/gradient_faults.py): the table, and a sample of it."""

from __future__ import annotations

import ast
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from conftest import joined
from outvote.run.pool import Pool
from test_ground_truth import draw_word, told

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    from gradient_fault_rows import FAULTS, SCRIPTS, GradientFault
    from gradient_faults import planted_by, scored_gradient
    from gradient_kinks import kinks
    from ground_truth_bench import build_cases
finally:
    sys.path.remove(str(BENCHMARKS))

WORD = draw_word()


def drawn(word: str) -> list[GradientFault]:
    return random.Random(word).sample(FAULTS, 2)


def test_every_library_and_stage_has_its_faults() -> None:
    per_target = Counter(fault.target for fault in FAULTS)
    assert set(per_target) == {"tensorflow", "jax", "torch"}
    assert min(per_target.values()) >= 10
    assert len(FAULTS) >= 30
    assert {fault.stage for fault in FAULTS} == {
        *("loss", "gradient", "regulariser", "statistics", "optimiser", "steps"),
        *("clipping", "decay", "averaging", "loss scaling"),
    }


def test_a_script_says_what_it_plants_and_has_a_row() -> None:
    assert sorted(p.stem for p in SCRIPTS.glob("*.py")) == sorted(f.name for f in FAULTS)
    for fault in FAULTS:
        tree = ast.parse(fault.script.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), fault.name
        compile(fault.model, fault.name, "eval")
    words = [str(number) for number in range(400)]
    assert {f.name for word in words for f in drawn(word)} == {f.name for f in FAULTS}


def test_there_are_a_hundred_kinks() -> None:
    assert len(list(kinks())) >= 100


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    build_cases(drawn(WORD), folder)
    return folder


@pytest.mark.frameworks
@pytest.mark.parametrize("fault", drawn(WORD), ids=lambda fault: fault.name)
def test_a_drawn_fault_is_found_accused_placed_and_judged(
    fault: GradientFault, real_pool: Pool, cases: Path
) -> None:
    with joined(real_pool, planted_by(fault)):
        score = scored_gradient(real_pool, fault, cases)
    assert score.answers == (True,) * 5, told(WORD, [score.line(), *score.reasons()])
