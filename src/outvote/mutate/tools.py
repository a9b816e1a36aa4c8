"""What a dialect lends to rules and searches: new layers, other parameters, illegal ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from outvote.core.blobs import BlobStore
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.model import Layer
from outvote.core.protocol import LayerAttempted, Request
from outvote.mutate.subject import Spec
from outvote.run.pool import Pool


class Tools(Protocol):
    """Shared by all rules and searches of a campaign."""

    @property
    def blobs(self) -> BlobStore: ...

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of layers that can be drawn."""
        ...

    @property
    def not_covered(self) -> Mapping[str, str]:
        """The kinds that cannot be drawn, each with the reason."""
        ...

    @property
    def refused(self) -> int:
        """How many drawn layers the library would not have."""
        ...

    def parameters(self, layer: Layer) -> dict[str, Any]:
        """The parameters that can be exchanged, as they are now; none where none can."""
        ...

    def others(self, layer: Layer, name: str, value: Any) -> list[Any]:
        """Other legal values of a parameter, simple ones first (AUDEE's `replace`)."""
        ...

    def illegal(self, layer: Layer) -> list[tuple[str, Any]]:
        """All (parameter, value) that every target must refuse for this kind of layer."""
        ...

    def variant(
        self,
        layer: Layer,
        parameters: Mapping[str, Any],
        given: Sequence[Spec],
        rng: np.random.Generator,
    ) -> Layer | None:
        """The layer with these parameters on these tensors; None where it is refused."""
        ...

    def attempt(
        self, layer: Layer, parameters: Mapping[str, Any], given: Sequence[Spec]
    ) -> Request[LayerAttempted]:
        """What a target is asked in order to try such a layer."""
        ...


@dataclass
class NoTools:
    """For a dialect that makes no layers: rules that need none still apply."""

    blobs: BlobStore
    kinds: Collection[str] = ()
    not_covered: Mapping[str, str] = field(default_factory=dict)
    refused: int = 0

    def parameters(self, layer: Layer) -> dict[str, Any]:
        return {}

    def others(self, layer: Layer, name: str, value: Any) -> list[Any]:
        return []

    def illegal(self, layer: Layer) -> list[tuple[str, Any]]:
        return []

    def variant(
        self,
        layer: Layer,
        parameters: Mapping[str, Any],
        given: Sequence[Spec],
        rng: np.random.Generator,
    ) -> Layer | None:
        return None

    def attempt(
        self, layer: Layer, parameters: Mapping[str, Any], given: Sequence[Spec]
    ) -> Request[LayerAttempted]:
        raise UsageError("this dialect makes no layers: there are no illegal values to try")


def tools_for(spoken: str, pool: Pool, reader: str) -> Tools:
    """What the dialect lends, as one worker has it."""
    wing = dialect(spoken)
    return wing.mutation.mutation_tools(pool, reader) if wing.has("mutate") else NoTools(pool.blobs)


def value_class(value: Any) -> str:
    """What kind of value it is, coarsely: the unit in which coverage of values is counted."""
    if value is None or isinstance(value, bool | str):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, list | tuple):
        inner = [value_class(item) for item in value]
        return inner[0] if len(set(inner)) == 1 else "mixed"
    if isinstance(value, int):
        return str(value) if abs(value) < 2 else "even" if value % 2 == 0 else "odd"
    size = abs(value)
    sign = "-" if value < 0 else ""
    return sign + (
        "zero" if not size else "tiny" if size < 1e-6 else "usual" if size < 1e3 else "huge"
    )
