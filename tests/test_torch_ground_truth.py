"""Faults planted in PyTorch and its converters (benchmarks/torch_faults.py): one of them.

Drawn by the commit, as in test_ground_truth.py; OUTVOTE_SAMPLE repeats a draw.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from outvote.run.pool import Pool
from test_ground_truth import WORD, told

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    from torch_fault_plants import PLANTED
    from torch_fault_rows import FAULTS, TorchFault
    from torch_faults import installed, scored
finally:
    sys.path.remove(str(BENCHMARKS))

pytestmark = pytest.mark.frameworks
FAMILIES = "decomposition lowering exporter converter quantiser kernel crash".split()
SLOW = "lowering"  # Inductor compiles for seconds: test_torch_check.py has one


def drawn_fault(word: str) -> TorchFault:
    """Of any family, as far as targets are installed; all families are drawn alike often."""
    rng = random.Random(word)
    quick = [fault for fault in installed() if fault.family != SLOW]
    family = rng.choice(sorted({fault.family for fault in quick}))
    return rng.choice([fault for fault in quick if fault.family == family])


def test_every_plant_has_its_row_and_every_family_its_faults() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names) >= 30
    assert set(names) == set(PLANTED)
    assert {fault.family for fault in FAULTS} == set(FAMILIES)


def test_words_draw_every_fault_that_is_not_slow() -> None:
    drawn = {drawn_fault(str(number)).name for number in range(1000)}
    assert drawn == {fault.name for fault in installed() if fault.family != SLOW}


def test_a_drawn_fault_is_found_accused_named_and_made_small(
    program_pool: Pool, tmp_path: Path
) -> None:
    score = scored(program_pool, drawn_fault(WORD), tmp_path / "case")
    assert score.is_right, told(WORD, [score.row(), score.title])
