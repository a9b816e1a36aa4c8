"""Faults planted in PyTorch and its converters (benchmarks/torch_faults.py): a sample of them.

Drawn by the commit, as in test_ground_truth.py; OUTVOTE_SAMPLE repeats a draw.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from outvote.run.pool import Pool
from test_ground_truth import WORD, told

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    from torch_fault_plants import PLANTED
    from torch_fault_rows import FAULTS, TorchFault
    from torch_faults import installed, open_pool, scored
finally:
    sys.path.remove(str(BENCHMARKS))

pytestmark = pytest.mark.frameworks
FAMILIES = "decomposition lowering exporter converter quantiser kernel crash".split()
SLOW = "lowering"  # Inductor compiles for seconds


def drawn_faults(word: str) -> list[TorchFault]:
    """Of different families: three, as far as targets are installed."""
    rng = random.Random(word)
    quick = [fault for fault in installed() if fault.family != SLOW]
    known = sorted({fault.family for fault in quick})
    families = rng.sample(known, min(3, len(known)))
    return [rng.choice([f for f in quick if f.family == family]) for family in families]


def test_every_plant_has_its_row_and_every_family_its_faults() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names) >= 30
    assert set(names) == set(PLANTED)
    assert {fault.family for fault in FAULTS} == set(FAMILIES)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with open_pool(drawn_faults(WORD)) as running:
        yield running


@pytest.mark.parametrize("fault", drawn_faults(WORD), ids=lambda fault: fault.name)
def test_a_drawn_fault_is_found_accused_named_and_made_small(
    fault: TorchFault, pool: Pool, tmp_path: Path
) -> None:
    score = scored(pool, fault, tmp_path / "case")
    assert score.is_right, told(WORD, [score.row(), score.title])
