"""Planted faults, node tests and clean graphs of ONNX (benchmarks/onnx_*.py): a sample of each.

Drawn by the commit, as in test_ground_truth.py; OUTVOTE_SAMPLE repeats a draw.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from outvote.core.errors import UsageError
from outvote.dialects.onnx.workers.shared.examples import node_tests
from outvote.run.pool import Pool
from test_ground_truth import WORD, told

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    from onnx_fault_plants import KERNELS, REWRITES
    from onnx_fault_rows import FAULTS, OnnxFault
    from onnx_faults import open_pool, scored
    from onnx_faults_clean import brought, check_clean, is_supported, label
    from onnx_node_tests import PASSED, READER, ended, read_test, run_test
finally:
    sys.path.remove(str(BENCHMARKS))

FAMILIES = (
    *("padding", "attribute", "axis", "broadcast", "off by one", "size", "rounding", "nan"),
    *("fusion", "free sizes", "zoo", "crash", "hang"),
)


def drawn_faults(word: str) -> list[OnnxFault]:
    """A fusion and three others; the one that hangs takes its time limit and is left out."""
    quick = [fault for fault in FAULTS if fault.family != "hang"]
    fusions = [fault for fault in quick if fault.family == "fusion"]
    rng = random.Random(word)
    return [rng.choice(fusions), *rng.sample([f for f in quick if f not in fusions], 3)]


def drawn_graphs(word: str) -> list[Path]:
    """The small graphs that the onnx package brings, shuffled."""
    small = [path for path in brought() if path.name == "model.onnx"]
    return random.Random(word).sample(small, len(small))


def test_every_plant_has_its_row_and_every_family_its_faults() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names) >= 40
    assert set(names) == {*REWRITES, *KERNELS}
    assert {fault.family for fault in FAULTS} == set(FAMILIES)
    for fault in FAULTS:
        assert len(fault.nodes) == (2 if fault.family == "fusion" else 1)


def test_words_draw_all_faults() -> None:
    words = [str(number) for number in range(400)]
    drawn = {fault.name for word in words for fault in drawn_faults(word)}
    assert drawn == {fault.name for fault in FAULTS if fault.family != "hang"}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with open_pool() as running:
        yield running


@pytest.mark.frameworks
@pytest.mark.parametrize("fault", drawn_faults(WORD), ids=lambda fault: fault.name)
def test_a_drawn_fault_is_found_accused_named_and_made_small(
    fault: OnnxFault, pool: Pool, tmp_path: Path
) -> None:
    score = scored(pool, fault, tmp_path / "case")
    assert score.is_right, told(WORD, [score.line(), score.title])


@pytest.mark.frameworks
def test_two_drawn_graphs_show_no_bug_that_float64_does_not_support(
    pool: Pool, tmp_path: Path
) -> None:
    """The first two that several runtimes take: some are of types that one alone knows."""
    checked = 0
    for path in drawn_graphs(WORD):
        try:
            _, bugs = check_clean(pool, path, tmp_path)
        except UsageError as error:
            if "could run the model" not in str(error):
                raise
            continue
        false = [finding.title for finding in bugs if not is_supported(finding)]
        assert not false, told(WORD, [label(path), *false])
        checked += 1
        if checked == 2:
            return
    pytest.fail("fewer than two graphs could be checked")


@pytest.mark.frameworks
def test_the_reference_passes_drawn_node_tests(pool: Pool, tmp_path: Path) -> None:
    """Expected values come from the same hands: what it fails, we brought in."""
    every = [test for test in node_tests() if "bernoulli" not in test.name]
    failed = {"test_scan_sum", "test_if_opt"}  # faults of its own
    failed |= {t.name for t in every if t.name.endswith("_delta_expanded")}  # and these
    failed |= {t.name for t in every if "test_scatter_with" in t.name}
    chosen = random.Random(WORD).sample([t for t in every if t.name not in failed], 60)
    ends = []
    for test in (test.bare or test for test in chosen):
        model = read_test(pool, test, tmp_path)
        ends.append(ended(test, run_test(pool, test, [READER], model)[READER]))
    assert {end.end for end in ends} == {PASSED}, told(WORD, [str(e) for e in ends])
