"""Which of its rule's mutants one is: the seed of its birth tells a rule that deals what it tries.

The numbers of mutants go to all rules, so that they do not say it.
"""

from __future__ import annotations

import numpy as np

_BITS = 32  # of the campaign's seed; the count is above them


def dealing_seed(seed: int, count: int) -> int:
    """For the mutant that is the `count`-th of its rule, from 1 on, in a campaign of that seed."""
    return seed % (1 << _BITS) | count << _BITS


def told_by(rng: np.random.Generator) -> tuple[int, int]:
    """The campaign's seed, and how many mutants of the rule came before, by a generator that was
    made of a birth's seed and number. Where no seed tells, all numbers are the rule's.
    """
    made_of = np.atleast_1d(rng.bit_generator.seed_seq.entropy)  # type: ignore[attr-defined]
    seed = int(made_of[0]) if len(made_of) > 1 else 0
    count = seed >> _BITS
    return seed % (1 << _BITS), count - 1 if count else int(made_of[-1])
