"""Multi-layer addition: a chain of nodes of any kind that as a whole preserves the shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Ref
from outvote.dialects.onnx.mutate.splice import Splice
from outvote.dialects.onnx.mutate.tools import OnnxTools
from outvote.mutate.subject import Subject

NAME, GROUP = "MLA", "lemon"
TITLE = "multi-layer addition"
_MOST = 3


def sites(subject: Subject, tools: OnnxTools) -> Sequence[Ref]:
    return [ref for ref in subject.float_tensors() if subject.spec(ref).size]


def apply(subject: Subject, site: Ref, tools: OnnxTools, rng: np.random.Generator) -> Subject:
    splice = Splice(subject, site, tools, rng)
    splice.draw(int(rng.integers(1, _MOST + 1)))
    splice.restore(subject.spec(site))
    return splice.inserted()
