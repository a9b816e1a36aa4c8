"""AUDEE's choices that are no rules of mutation: illegal values, and searched inputs and weights.

A probe runs something before there is a mutant. What it proposes goes through the same oracle as
every mutant; it does not breed, because a search is not repeated from a seed of chance alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from outvote.campaign.family import changed_layers
from outvote.campaign.job import FuzzJob
from outvote.campaign.probes.climb import Climb
from outvote.campaign.probes.evolution import Evolution, Evolved
from outvote.campaign.probes.genome import Genome
from outvote.campaign.probes.illegal import IllegalTrial, draw_attempt
from outvote.campaign.seeds import Seed
from outvote.campaign.trial import Mutant, Trial
from outvote.core.arrays import Array
from outvote.core.case import Data
from outvote.core.dialect import dialect
from outvote.core.truth import Truth
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools
from outvote.run.pool import Pool
from outvote.search.genetic import LEVELS
from outvote.store.rows import Birth

PROBES = {  # with what they are, in a few words: docs/fuzz.md has them
    "ILL": "illegal value",
    "IN": "search for inputs",
    "WT": "search for weights",
    "IN-WT": "search for both",
}
GROUP = "audee"  # whose they are, as a rule says of itself
MOST_WEIGHTS = 4_000_000  # larger models do not evolve their weights: a population must fit


class Prober:
    """Makes trials by asking targets."""

    def __init__(self, job: FuzzJob, pool: Pool, names: Sequence[str], tools: Tools) -> None:
        self._job = job
        self._pool = pool
        self._names = names
        self._tools = tools
        self._evolution = Evolution(pool, names, job.genetic)
        self._climb = Climb(pool, names, job.genetic) if job.search == "gradient" else None

    def probe(self, birth: Birth, root: int, parent: Subject, seed: Seed) -> Trial | None:
        """Something to try; None where nothing of the model can be probed that way."""
        rng = np.random.default_rng([birth.seed, birth.number, 0xA0DEE])
        if birth.rule == "ILL":
            return self._illegal(birth, root, parent, rng)
        return self._searched(birth, root, parent, seed, rng)

    def _illegal(
        self, birth: Birth, root: int, parent: Subject, rng: np.random.Generator
    ) -> Trial | None:
        if not all(self._pool.targets[name].can("attempt") for name in self._names):
            return None
        attempt = draw_attempt(parent, self._tools, rng)
        return IllegalTrial(birth, root, parent, attempt) if attempt else None

    def _searched(
        self, birth: Birth, root: int, parent: Subject, seed: Seed, rng: np.random.Generator
    ) -> Trial | None:
        if not dialect(parent.model.dialect).has("logits"):
            return None
        levels = LEVELS[birth.rule]
        if any(item.batch != 0 for item in parent.model.inputs):
            return None  # a population is a batch
        if "weight" in levels and not 0 < parent.model.weight_count <= MOST_WEIGHTS:
            return None
        row = int(rng.integers(seed.case.data.count))
        genome = Genome(parent.model, seed.case.data.take([row]), levels, self._tools.blobs)
        if not len(genome.first):
            return None
        found = self._climb.search(genome, rng) if self._climb and levels == ("input",) else None
        found = found or self._evolution.search(genome, rng)
        subject = replace(parent, model=found.model)
        changed, own = changed_layers(parent, subject), self._with_inputs(seed, row, found)
        cost = found.requests + 1
        return Mutant(birth, root, subject, changed, own, searched=True, cost=cost, counts=False)

    def _with_inputs(self, seed: Seed, row: int, found: Evolved) -> Seed:
        """The seed with what was found as its inputs; each stands for the row it came from."""
        inputs = tuple(np.ascontiguousarray(array) for array in found.inputs)
        count = len(inputs[0])
        truth = seed.case.truth
        told = Truth(_repeated(truth.labels, row, count), _repeated(truth.given, row, count),
                     truth.classes)  # fmt: skip
        before = seed.case.data
        source = f"evolved from input {row} of {before.source}"
        data = Data(inputs, None, source, before.axes)
        digests = tuple(self._pool.blobs.put(array) for array in inputs)
        case = replace(seed.case, data=data, truth=told)
        return replace(seed, case=case, inputs=digests)


def _repeated(values: Array | None, row: int, count: int) -> Array | None:
    return None if values is None else np.repeat(values[row : row + 1], count, axis=0)
