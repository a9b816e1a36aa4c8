"""Layer addition: inserts a shape-preserving layer drawn from all kinds that fit the place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Ref
from outvote.dialects.keras.mutate.chains import Chain
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.subject import Subject

NAME, GROUP = "LA", "lemon"
TITLE = "layer addition"


def sites(subject: Subject, tools: KerasTools) -> Sequence[Ref]:
    return [
        ref
        for ref in subject.float_tensors()
        if tools.catalogue.fitting(len(subject.spec(ref).place))
    ]


def apply(subject: Subject, site: Ref, tools: KerasTools, rng: np.random.Generator) -> Subject:
    chain = Chain(subject, site, tools, rng)
    chain.draw(tools.catalogue.fitting(len(chain.spec.place)), keep=True)
    return chain.inserted()
