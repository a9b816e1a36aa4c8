"""New nodes on a branch of their own: one to five of any kind, drawn freely, that feed nothing.

Ours. Nodes that have to fit into a model keep its shapes, or are led back to them; these need not.
They are watched, so they are compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Ref
from outvote.dialects.onnx.mutate.splice import Splice
from outvote.dialects.onnx.mutate.tools import OnnxTools
from outvote.mutate.subject import Subject

NAME, GROUP = "BR", "layers"
TITLE = "new layer on a branch"
_MOST = 5


def sites(subject: Subject, tools: OnnxTools) -> Sequence[Ref]:
    return [
        Ref(name, index)
        for name, specs in subject.specs.items()
        for index, spec in enumerate(specs)
        if spec.size
    ]


def apply(subject: Subject, site: Ref, tools: OnnxTools, rng: np.random.Generator) -> Subject:
    splice = Splice(subject, site, tools, rng)
    splice.draw(int(rng.integers(1, _MOST + 1)))
    return subject.with_layers([*subject.model.layers, *splice.layers], specs=splice.specs)
