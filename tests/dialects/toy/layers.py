"""What the driver must know of a node."""

from __future__ import annotations

from typing import Any

from outvote.core.model import Input, Layer, Model
from outvote.core.operators import contains as contains
from outvote.core.operators import makes_masks as makes_masks
from outvote.core.operators import masked as masked
from outvote.core.operators import renamed as renamed
from outvote.core.operators import stale as stale


def parameters(layer: Layer) -> dict[str, Any]:
    return dict(layer.config)


def dtype(layer: Layer) -> str | None:
    return None


def vocabulary(model: Model, item: Input) -> int:
    return 2


def words(model: Model, item: Input) -> tuple[str, ...]:
    return ()


def is_classifier(model: Model) -> bool:
    return False
