"""Toys by their numbers: one operator on drawn numbers, run on all targets and compared."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.protocol import ModelRead, RunModel
from outvote.core.sifted import CauseKey, PartedCase, Sifted, SuspectCase
from outvote.core.target import Run, Target
from outvote.run.pool import Pool

from .workers.graph import model_of

PACK = 64  # as campaigns count those that nobody can try
OPERATORS = ("Relu", "Softmax")


@dataclass(frozen=True)
class ToySieve:
    """Whoever gives other numbers than the first target is a suspect."""

    pool: Pool
    names: Sequence[str]
    seed: int

    def sifted(self, first: int, end: int) -> Iterator[Sifted]:
        for start in range(first, end, PACK):
            inside: Counter[str] = Counter()
            found = [self._tried(n, inside) for n in range(start, start + PACK)]
            yield Sifted(start, PACK, PACK, tuple(one for one in found if one), inside)

    def read(self, case: SuspectCase) -> ModelRead:
        (x,) = case.inputs
        shape = (None, *x.shape[1:])
        model, _ = model_of(json.loads(case.content), self.pool.blobs.put)
        specs = {layer.name: ((shape, "float32"),) for layer in model.layers}
        return ModelRead(model=model, output_shapes=[list(shape)], specs=specs)

    def close(self) -> None:
        """It holds nothing."""

    def _tried(self, number: int, inside: Counter[str]) -> PartedCase | None:
        rng = np.random.default_rng([self.seed, number])
        x = rng.normal(size=(2, 3)).astype(np.float32)
        operator = str(rng.choice(OPERATORS))
        node = {"name": "n", "op": operator, "inputs": ["x"], "attributes": {"axis": 1}}
        inputs = [{"name": "x", "shape": [None, 3], "batch": 0}]
        content = json.dumps({"inputs": inputs, "nodes": [node], "outputs": ["n"]}).encode()
        model, _ = model_of(json.loads(content), self.pool.blobs.put)
        request = RunModel(model=model, inputs=(self.pool.blobs.put(x),), batch=2)
        began = time.monotonic()
        runs = self.pool.ask_all(self.names, request)
        inside.update(dict.fromkeys(self.names, time.monotonic() - began))
        alone = [name for name in self.names if not _same(runs, self.names[0], name)]
        if not alone:
            return None
        key = CauseKey(f"{operator} | {', '.join(alone)}: values")
        return PartedCase(number, key, (SuspectCase(key, content, (x,)),))


def _same(runs: Mapping[str, Run[Any]], one: str, other: str) -> bool:
    def given(name: str) -> Array:
        (array,) = runs[name].reply.outputs.arrays
        found: Array = array
        return found

    return bool(np.allclose(given(one), given(other), rtol=1e-4, atol=1e-6))


def open_sieve(pool: Pool, targets: Sequence[Target], reader: str, seed: int) -> ToySieve:
    """A sieve on these targets."""
    return ToySieve(pool, [target.name for target in targets], seed)
