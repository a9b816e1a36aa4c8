"""Multi-layer addition: inserts a chain of layers that as a whole preserves the shape.

Any kind can stand in the chain: it is led to a shape that the kind takes, and led back behind it.
Whoever read the tensor before it reads the chain's end (LEMON, section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Ref
from outvote.dialects.keras.mutate.chains import Chain
from outvote.dialects.keras.mutate.sites import foldable
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.subject import Subject

NAME, GROUP = "MLA", "lemon"
TITLE = "multi-layer addition"
_MOST = 3


def sites(subject: Subject, tools: KerasTools) -> Sequence[Ref]:
    return foldable(subject)


def apply(subject: Subject, site: Ref, tools: KerasTools, rng: np.random.Generator) -> Subject:
    chain = Chain(subject, site, tools, rng)
    kinds = list(tools.catalogue.kinds.values())
    kind = kinds[int(rng.integers(len(kinds)))]
    chain.fit(kind)
    chain.draw([kind], keep=False)
    for _ in range(int(rng.integers(_MOST))):
        next_kinds = tools.catalogue.fitting(len(chain.spec.place))
        if not next_kinds or not chain.spec.is_float or not chain.spec.size:
            break
        chain.draw(next_kinds, keep=False)
    chain.restore(subject.spec(site))
    return chain.inserted()
