"""Layer addition: inserts a call that keeps the shape, of any operator whose samples do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Ref
from outvote.dialects.torch_export.mutate.tools import TorchTools
from outvote.mutate.subject import Subject

NAME, GROUP = "LA", "lemon"
TITLE = "layer addition"


def sites(subject: Subject, tools: TorchTools) -> Sequence[Ref]:
    return tools.places(subject)


def apply(subject: Subject, site: Ref, tools: TorchTools, rng: np.random.Generator) -> Subject:
    return tools.with_calls(subject, site, rng, calls=1, keep=True)
