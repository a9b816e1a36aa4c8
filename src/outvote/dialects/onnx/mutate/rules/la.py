"""Layer addition: inserts a shape-preserving node drawn from all operators that fit the place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Ref
from outvote.dialects.onnx.mutate.splice import Splice
from outvote.dialects.onnx.mutate.tools import OnnxTools
from outvote.mutate.subject import Subject

NAME, GROUP = "LA", "lemon"
TITLE = "layer addition"


def sites(subject: Subject, tools: OnnxTools) -> Sequence[Ref]:
    return subject.float_tensors()


def apply(subject: Subject, site: Ref, tools: OnnxTools, rng: np.random.Generator) -> Subject:
    splice = Splice(subject, site, tools, rng)
    splice.draw(keep=True)
    return splice.inserted()
