"""A fan of new layers: several kinds, drawn freely, each on its own branch that feeds nothing.

Ours. A layer that has to fit into a model keeps its shape, or is led back to it; these need not,
and several are tried in one run. Every branch is watched, so each is compared. A third of the
layers get a corner of one parameter (AUDEE's interesting values).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Layer, Ref
from outvote.mutate.catalogue import Kind
from outvote.mutate.chains import Chain, Impossible
from outvote.mutate.parameters import parameter
from outvote.mutate.rules.mla import sites
from outvote.mutate.subject import Spec, Subject
from outvote.mutate.tools import Tools

__all__ = ["NAME", "TITLE", "apply", "sites"]
NAME, TITLE = "FAN", "fan of new layers"
_BRANCHES = 4
_TRIES = 6
_CORNERS = 0.33


def apply(subject: Subject, site: Ref, tools: Tools, rng: np.random.Generator) -> Subject:
    kinds = list(tools.catalogue.kinds.values())
    grown = subject
    for _ in range(_BRANCHES):
        kind = kinds[int(rng.integers(len(kinds)))]
        try:
            chain = Chain(grown, site, tools, rng)
            chain.fit(kind)
            _draw(chain, kind, tools, rng)
        except Impossible:
            continue
        grown = _attached(grown, chain.layers, chain.specs)
    if grown is subject:
        raise Impossible("none of the drawn kinds fits")
    return grown


def _draw(chain: Chain, kind: Kind, tools: Tools, rng: np.random.Generator) -> None:
    for _ in range(_TRIES):
        parameters = kind.draw(chain.spec.place, rng, tools.catalogue.activations, False)
        rows = {name: parameter(kind.name, name) for name in kind.parameters}
        corners = {name: row.corners for name, row in rows.items() if row and row.corners}
        if corners and rng.random() < _CORNERS:
            name = str(rng.choice(sorted(corners)))
            parameters[name] = corners[name][int(rng.integers(len(corners[name])))]
        also = [chain.end] * (kind.arity - 1)
        if chain.add(kind.name, parameters, also, kind.joined):
            return
    raise Impossible(f"{kind.name} at {chain.spec}")


def _attached(
    subject: Subject, layers: Sequence[Layer], specs: dict[str, tuple[Spec, ...]]
) -> Subject:
    """New layers at the end of the model, that nothing reads."""
    return subject.with_layers([*subject.model.layers, *layers], specs=specs)
