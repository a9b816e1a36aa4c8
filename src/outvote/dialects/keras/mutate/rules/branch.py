"""A new layer on a branch of its own: any kind, drawn freely, that feeds nothing.

Ours. A layer that has to fit into a model keeps its shape, or is led back to it; this one need not,
and may even give another shape than it announces. It is watched, so it is compared. A third get a
corner of one parameter (AUDEE's interesting values), and about half read something that a model
seldom gives them (`unusual.py`) or compute in another type.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Ref
from outvote.dialects.keras.mutate.catalogue import Kind
from outvote.dialects.keras.mutate.chains import Chain
from outvote.dialects.keras.mutate.parameters import DTYPE, parameter
from outvote.dialects.keras.mutate.sites import foldable
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.mutate.unusual import prepare
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Subject

NAME, GROUP = "BR", "layers"
TITLE = "new layer on a branch"
_KINDS = 20
_TRIES = 6
_DRAWN = 0.7  # of the parameters: more than usual, for nothing has to fit
_CORNERS = 0.33
_OTHER_TYPES = 0.15
_UNUSUAL = 0.35


def sites(subject: Subject, tools: KerasTools) -> Sequence[Ref]:
    return foldable(subject)


def apply(subject: Subject, site: Ref, tools: KerasTools, rng: np.random.Generator) -> Subject:
    kinds = list(tools.catalogue.kinds.values())
    # A kind with more parameters has more to try. All are drawn at once, so that it takes only
    # about the logarithm of their number to meet every pair of values.
    weights = np.array([1.0 + np.log2(1 + len(kind.parameters)) for kind in kinds])
    for _ in range(_KINDS):
        kind = kinds[int(rng.choice(len(kinds), p=weights / weights.sum()))]
        chain = Chain(subject, site, tools, rng)
        try:
            chain.fit(kind)
            if rng.random() < _UNUSUAL and not kind.whole_numbers:
                prepare(chain, rng)
            _draw(chain, kind, tools, rng)
        except Impossible:
            continue
        return subject.with_layers([*subject.model.layers, *chain.layers], specs=chain.specs)
    raise Impossible("none of the drawn kinds fits")


def _draw(chain: Chain, kind: Kind, tools: KerasTools, rng: np.random.Generator) -> None:
    for _ in range(_TRIES):
        parameters = kind.draw(chain.spec.place, rng, tools.catalogue.activations, False, _DRAWN)
        rows = {name: parameter(kind.name, name) for name in kind.parameters}
        corners = {name: row.corners for name, row in rows.items() if row and row.corners}
        if corners and rng.random() < _CORNERS:
            name = str(rng.choice(sorted(corners)))
            parameters[name] = corners[name][int(rng.integers(len(corners[name])))]
        if rng.random() < _OTHER_TYPES:
            parameters["dtype"] = str(rng.choice(DTYPE.corners))
        also = [chain.end] * (kind.arity - 1)
        if chain.add(kind.name, parameters, also, kind.joined, last=True):
            return
    raise Impossible(f"{kind.name} at {chain.spec}")
