"""New layers of Keras and other parameters for old ones, as one worker's Keras has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outvote.core.blobs import BlobStore
from outvote.core.errors import UsageError
from outvote.core.model import Layer
from outvote.core.protocol import AttemptLayer, ListKinds
from outvote.dialects.keras.mutate import variants
from outvote.dialects.keras.mutate.catalogue import Catalogue
from outvote.dialects.keras.mutate.maker import Maker
from outvote.dialects.keras.mutate.parameters import parameter
from outvote.mutate.subject import Spec
from outvote.run.pool import Pool, asker
from outvote.run.settle import ask_settled


@dataclass(frozen=True)
class KerasTools:
    """What `outvote.mutate.tools.Tools` asks for, and what the rules of Keras use besides."""

    blobs: BlobStore
    maker: Maker
    catalogue: Catalogue

    @property
    def kinds(self) -> Collection[str]:
        return self.catalogue.kinds

    @property
    def not_covered(self) -> Mapping[str, str]:
        return self.catalogue.not_covered

    @property
    def refused(self) -> int:
        return self.maker.refused

    def parameters(self, layer: Layer) -> dict[str, Any]:
        if not variants.can_vary(self.catalogue, layer):
            return {}
        return variants.current(self.catalogue.kinds[layer.kind], layer)

    def others(self, layer: Layer, name: str, value: Any) -> list[Any]:
        return variants.others(layer.kind, name, value)

    def illegal(self, layer: Layer) -> list[tuple[str, Any]]:
        if layer.kind not in self.catalogue.kinds or not variants.is_plain_call(layer):
            return []
        names = self.catalogue.kinds[layer.kind].parameters
        rows = {name: row for name in names if (row := parameter(layer.kind, name))}
        return [(name, value) for name, row in rows.items() for value in row.illegal]

    def variant(
        self,
        layer: Layer,
        parameters: Mapping[str, Any],
        given: Sequence[Spec],
        rng: np.random.Generator,
    ) -> Layer | None:
        made = variants.variant(layer, parameters, given, self.maker, rng)
        return None if made is None else made[0]

    def attempt(
        self, layer: Layer, parameters: Mapping[str, Any], given: Sequence[Spec]
    ) -> AttemptLayer:
        return AttemptLayer(
            kind=layer.kind,
            parameters=dict(parameters),
            given=tuple((spec.shape, spec.dtype) for spec in given),
            joined=variants.is_joined(layer),
            steps=1,
        )


def keras_tools(pool: Pool, reader: str) -> KerasTools:
    """The layers that the Keras of one worker has."""
    found = ask_settled(pool, reader, ListKinds())
    if not found.ok:
        raise UsageError(
            f"{reader} could not list the layers of its Keras: {found.message}; "
            "name a backend of Keras 3 among the targets"
        )
    maker = Maker(asker(pool, reader), pool.blobs)
    return KerasTools(pool.blobs, maker, Catalogue.of(found.reply))
