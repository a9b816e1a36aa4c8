"""Planted faults and clean models (benchmarks/ground_truth.py): the table, and a sample of it.

The headline figures of docs/verdicts.md are measured on all of them. Here each commit runs a few,
drawn by its hash, so that the figures can fail: over some dozen commits every row had its turn.
OUTVOTE_SAMPLE repeats a draw: it is the word that a failure names.
"""

from __future__ import annotations

import ast
import datetime
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from outvote.dialects.keras.zoo.catalog import ENTRIES
from outvote.run.pool import Pool

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    from ground_truth import scored
    from ground_truth_bench import PLANTED as PLANTED_TARGET
    from ground_truth_bench import build_cases, open_pool
    from ground_truth_clean import check_clean, is_known, known_bugs
    from ground_truth_faults import FAULTS, SCRIPTS, Fault
finally:
    sys.path.remove(str(BENCHMARKS))

FAMILIES = set("formula geometry state dtype corner size compiled parameter memory".split())
PLANTED = [fault for fault in FAULTS if not fault.is_control]
CONTROLS = [fault for fault in FAULTS if fault.is_control]
BACKENDS = ("tensorflow", "jax", "torch")
LARGEST = 2_000_000  # weights; the giants of the zoo are left to the benchmark


def draw_word() -> str:
    """What the sample is drawn by: the wish of the user, the commit, or the day."""
    wish = os.environ.get("OUTVOTE_SAMPLE")
    if wish:
        return wish
    git = ["git", "-C", str(BENCHMARKS), "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(git, capture_output=True, text=True)
    return done.stdout.strip() or datetime.date.today().isoformat()


def drawn_faults(word: str) -> list[Fault]:
    """A planted fault of each backend, and a control, all shown to `check`."""
    rng = random.Random(word)
    chosen = [rng.choice([f for f in PLANTED if f.backend == backend]) for backend in BACKENDS]
    return [replace(fault, campaign=None) for fault in (*chosen, rng.choice(CONTROLS))]


def drawn_models(word: str) -> list[str]:
    """Two models of the zoo that take seconds."""
    small = [name for name, entry in ENTRIES.items() if entry.weights <= LARGEST]
    return random.Random(word).sample(small, 2)


WORD = draw_word()


def test_every_family_and_backend_has_its_faults() -> None:
    assert {fault.family for fault in PLANTED} == FAMILIES
    per_backend = Counter(fault.backend for fault in PLANTED)
    assert set(per_backend) == set(BACKENDS)
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


def test_a_word_draws_the_same_sample_again_and_words_draw_all() -> None:
    assert drawn_faults("a") == drawn_faults("a")
    assert drawn_models("a") == drawn_models("a")
    words = [str(number) for number in range(400)]
    assert {f.name for word in words for f in drawn_faults(word)} == {f.name for f in FAULTS}
    assert len({name for word in words for name in drawn_models(word)}) >= 12


def test_the_wish_of_the_user_is_the_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTVOTE_SAMPLE", "yesterday")
    assert draw_word() == "yesterday"


@pytest.fixture(scope="module")
def released() -> Iterator[Pool]:
    with open_pool() as pool:
        yield pool


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    build_cases(drawn_faults(WORD), folder)
    return folder


def told(word: str, lines: Sequence[str]) -> str:
    return "\n".join([*lines, f"run it again with OUTVOTE_SAMPLE={word}"])


@pytest.mark.frameworks
@pytest.mark.parametrize("fault", drawn_faults(WORD), ids=lambda fault: fault.name)
def test_a_drawn_fault_is_found_accused_and_placed(
    fault: Fault, released: Pool, cases: Path
) -> None:
    score = scored(released, fault, cases)
    assert score.effect, told(WORD, [f"{fault.name} changes nothing"])
    if fault.is_control:
        assert score.verdict != "bug", told(WORD, [score.line()])
        return
    found = (score.found, score.accused, score.layer_first, score.verdict)
    assert found == (True, PLANTED_TARGET, True, fault.verdict), told(WORD, [score.line()])
    assert score.repro_lines, told(WORD, [score.line()])


@pytest.mark.frameworks
@pytest.mark.parametrize("name", drawn_models(WORD))
def test_a_drawn_model_shows_no_bug_that_is_not_listed(
    name: str, released: Pool, tmp_path: Path
) -> None:
    known = known_bugs()
    findings = check_clean(released, name, tmp_path)["findings"]
    false = [f["title"] for f in findings if f["triage"] == "bug" and not is_known(f, known)]
    assert not false, told(WORD, false)


@pytest.mark.frameworks
def test_a_drawn_model_keeps_every_relation(released: Pool, tmp_path: Path) -> None:
    """One library alone, held against itself."""
    name = drawn_models(WORD)[0]
    result = check_clean(released, name, tmp_path, "metamorphic", ["torch"])
    assert {row["relation"] for row in result["relations"]} >= {"alone", "order", "saved"}
    assert not result["findings"], told(WORD, [f["title"] for f in result["findings"]])
