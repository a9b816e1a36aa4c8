"""Whose turn it is: kinds, values, types and tensors are dealt like cards, not thrown like dice.

Chance leaves out a third of what is due once. Here every kind has its share of all turns, at even
distances, and in its turns each card of a deck comes once before one comes again. Nothing is
remembered here: the seed of a mutant, of which its generator was made, says which of its rule's it
is, so a campaign makes a mutant again from its birth.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np

from outvote.core.arrays import Array
from outvote.mutate.dealt import told_by

T = TypeVar("T", bound=Hashable)
_LEAST = 1e-9  # of a share


@dataclass(frozen=True)
class KindTurn:
    """The turn of a kind in a campaign: how many it had before, and the campaign's seed."""

    of: str
    number: int
    seed: int

    def dealt(self, deck: str, cards: Sequence[T]) -> T:
        """The card of this turn; each deck is shuffled anew when all of its cards were dealt."""
        dealt_before, place = divmod(self.number, len(cards))
        order = _shuffled(self.seed, f"{self.of} {deck}", dealt_before, len(cards))
        return cards[int(order[place])]


def turn_of(rng: np.random.Generator, shares: Mapping[str, float]) -> KindTurn:
    """By what the generator was made of, and what share of all turns each kind has."""
    seed, number = told_by(rng)
    weights = tuple(shares.values())
    least = max(min(weights), _LEAST)
    counts = tuple(max(1, round(weight / least)) for weight in weights)
    block, place = divmod(number, sum(counts))
    kinds, before = _block(seed, block, counts)
    kind = int(kinds[place])
    return KindTurn(list(shares)[kind], block * counts[kind] + int(before[place]), seed)


def cards(shares: Mapping[T, int]) -> list[T]:
    """A deck with so many of each."""
    return [card for card, count in shares.items() for _ in range(count)]


@lru_cache(maxsize=4)
def _block(seed: int, block: int, counts: tuple[int, ...]) -> tuple[Array, Array]:
    """For each place of a block, whose turn it is, and how many of its turns came before in it."""
    rng = np.random.default_rng([seed, block])
    kinds = np.repeat(np.arange(len(counts)), counts)
    before = np.concatenate([np.arange(count) for count in counts])
    order = np.argsort((before + rng.random(len(kinds))) / np.repeat(counts, counts))
    return kinds[order], before[order]


@lru_cache(maxsize=4096)
def _shuffled(seed: int, deck: str, times: int, count: int) -> Array:
    return np.random.default_rng([seed, zlib.crc32(deck.encode()), times]).permutation(count)
