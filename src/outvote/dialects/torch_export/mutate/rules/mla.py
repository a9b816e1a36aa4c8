"""Multi-layer addition: a chain of calls of any kind that as a whole preserves the shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Ref
from outvote.dialects.torch_export.mutate.tools import TorchTools
from outvote.mutate.subject import Subject

NAME, GROUP = "MLA", "lemon"
TITLE = "multi-layer addition"
_MOST = 3


def sites(subject: Subject, tools: TorchTools) -> Sequence[Ref]:
    return tools.places(subject)


def apply(subject: Subject, site: Ref, tools: TorchTools, rng: np.random.Generator) -> Subject:
    calls = int(rng.integers(1, _MOST + 1))
    return tools.with_calls(subject, site, rng, calls=calls, keep=False)
