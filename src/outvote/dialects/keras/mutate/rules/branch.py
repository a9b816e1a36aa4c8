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
from outvote.dialects.keras.mutate.chains import Chain
from outvote.dialects.keras.mutate.corners import draw_last, drawn_kind
from outvote.dialects.keras.mutate.parameters import DTYPE
from outvote.dialects.keras.mutate.sites import foldable
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.mutate.unusual import prepare
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Subject

NAME, GROUP = "BR", "layers"
TITLE = "new layer on a branch"
_KINDS = 20
_OTHER_TYPES = 0.15
_UNUSUAL = 0.35


def sites(subject: Subject, tools: KerasTools) -> Sequence[Ref]:
    return foldable(subject)


def apply(subject: Subject, site: Ref, tools: KerasTools, rng: np.random.Generator) -> Subject:
    for _ in range(_KINDS):
        kind = drawn_kind(tools, rng)
        chain = Chain(subject, site, tools, rng)
        try:
            chain.fit(kind)
            if rng.random() < _UNUSUAL and not kind.whole_numbers:
                prepare(chain, rng)
            dtype = str(rng.choice(DTYPE.corners)) if rng.random() < _OTHER_TYPES else None
            draw_last(chain, kind, tools, rng, [chain.end] * (kind.arity - 1), dtype)
        except Impossible:
            continue
        return subject.with_layers([*subject.model.layers, *chain.layers], specs=chain.specs)
    raise Impossible("none of the drawn kinds fits")
