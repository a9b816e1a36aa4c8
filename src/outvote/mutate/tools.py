"""What a rule is given besides the model: weights, new layers, and the catalogue."""

from __future__ import annotations

from dataclasses import dataclass

from outvote.core.blobs import BlobStore
from outvote.dialects.keras.mutate.catalogue import Catalogue
from outvote.dialects.keras.mutate.maker import Maker


@dataclass(frozen=True)
class Tools:
    """Shared by all rules of a campaign."""

    blobs: BlobStore
    maker: Maker
    catalogue: Catalogue
