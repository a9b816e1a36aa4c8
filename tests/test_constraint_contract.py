"""The contract of every domain constraint, whatever it lets change; `test_constraints.py` has each.

A file in `worker/explore/constraints` is held to it as soon as it is there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outvote.core.arrays import Array
from outvote.core.explore_protocol import Rules
from outvote.explore.job import CONSTRAINTS
from outvote.worker.explore.constraints import Memory, built_in

GUIDE = Path(__file__).parent.parent / "docs" / "explore.md"
SHAPE = (8, 6, 1)
WHOLE = ("add-only", "integer")
MOST = defaultdict(lambda: 1.0, integer=9.0)  # of the range, which begins at 0
every = pytest.mark.parametrize("name", CONSTRAINTS)
NUMBERS = st.integers(0, 2**32 - 1)


def seeds_for(name: str, number: int, count: int = 3) -> Array:
    """Pictures within the range; of what moves in whole steps, whole numbers."""
    drawn = MOST[name] * np.random.default_rng(number).random((count, *SHAPE))
    return (drawn.round() if name in WHOLE else drawn).astype(np.float32)


def rules_for(name: str) -> Rules:
    step = 3.0 if name in WHOLE else 0.25
    return Rules(np.zeros(SHAPE), np.full(SHAPE, MOST[name]), step, rectangle=(3, 2))


def gradients(number: int, count: int = 3) -> Array:
    return np.random.default_rng(number).normal(size=(count, *SHAPE)).astype(np.float32)


@every
@given(number=NUMBERS)
def test_what_it_makes_is_legal_and_of_the_same_form(name: str, number: int) -> None:
    seed = seeds_for(name, number)
    move, memory, x = built_in(name), Memory(), seed
    for turn in range(4):
        x = move(x, gradients(number + turn), seed, memory, rules_for(name))
        assert (x.shape, x.dtype) == (seed.shape, seed.dtype)
        assert ((x >= 0) & (x <= MOST[name])).all()
        assert all(len(kept) == len(seed) for kept in memory.values()), "one row per input"


@every
@given(number=NUMBERS)
def test_what_it_is_given_stays_as_it_is(name: str, number: int) -> None:
    seed, gradient = seeds_for(name, number), gradients(number)
    before = seed.copy(), gradient.copy()
    built_in(name)(seed, gradient, seed, {}, rules_for(name))
    np.testing.assert_array_equal(seed, before[0])
    np.testing.assert_array_equal(gradient, before[1])


@every
@given(number=NUMBERS)
def test_an_input_moves_the_same_in_any_company(name: str, number: int) -> None:
    """Inputs that have finished leave the batch, and with them their rows of the memory."""
    seed, gradient = seeds_for(name, number), gradients(number)
    move, memory = built_in(name), Memory()
    together = move(seed, gradient, seed, memory, rules_for(name))
    again = move(together, gradient, seed, memory, rules_for(name))
    for row in range(len(seed)):
        own, kept = slice(row, row + 1), Memory()
        alone = move(seed[own], gradient[own], seed[own], kept, rules_for(name))
        np.testing.assert_allclose(alone, together[own], atol=1e-6)
        alone = move(alone, gradient[own], seed[own], kept, rules_for(name))
        np.testing.assert_allclose(alone, again[own], atol=1e-6)


@every
def test_some_gradient_moves_some_input(name: str) -> None:
    seed = seeds_for(name, 0)
    move, memory, x = built_in(name), Memory(), seed
    for turn in range(12):
        x = move(x, gradients(turn), seed, memory, rules_for(name))
    assert (x != seed).any()


@every
def test_the_guide_has_a_row_for_it(name: str) -> None:
    assert re.search(rf"^\| `{re.escape(name)}`", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)


@every
def test_its_file_says_what_it_lets_change(name: str) -> None:
    module = built_in(name).__module__
    assert __import__(module, fromlist=["move"]).__doc__
