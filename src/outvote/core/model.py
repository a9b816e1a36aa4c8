"""A neural network as plain data: a graph of layers and references to their weights.

Nothing here needs a framework: a Model can be changed, hashed, stored and sent as it is.
Every layer is one call. Where a layer object is called again, `shares` names its first call, so
that its weights stay one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

from outvote.core.errors import ProtocolError

Json = Any
REF = "$ref"  # {"$ref": [producer, index]} inside args and kwargs is a tensor of the graph


@dataclass(frozen=True)
class Ref:
    """One tensor: the index-th output of a layer or a model input."""

    producer: str
    index: int = 0


@dataclass(frozen=True)
class Input:
    """What the model is fed. None in a shape is a free dimension.

    `batch` is the axis along which instances lie; None: all instances share the tensor.
    """

    name: str
    shape: tuple[int | None, ...]
    dtype: str
    batch: int | None = 0


@dataclass(frozen=True)
class Weight:
    """A named array of a layer; its content lies in the blob store."""

    name: str
    digest: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """One call of one layer, in the vocabulary of the model's dialect."""

    name: str
    kind: str
    config: Mapping[str, Json]
    args: Json = ()
    kwargs: Mapping[str, Json] = field(default_factory=dict)
    weights: tuple[Weight, ...] = ()
    origin: Mapping[str, Json] = field(default_factory=dict)  # what the dialect alone understands
    shares: str | None = None
    batch: tuple[int | None, ...] = ()  # batch axes of what it gives; none told: always the first

    def batch_axis(self, index: int) -> int | None:
        """Where the instances of a tensor that it gives lie; None: it has none."""
        return self.batch[index] if self.batch else 0

    def refs(self) -> Iterator[Ref]:
        """The tensors this layer reads, in call order."""
        return iter(self._refs)

    @cached_property
    def _refs(self) -> tuple[Ref, ...]:
        return (*find_refs(self.args), *find_refs(self.kwargs))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the layers and model inputs that feed this layer, each once."""
        return tuple(dict.fromkeys(ref.producer for ref in self.refs()))

    @cached_property
    def json(self) -> Json:
        """The layer as plain data, made once: most layers of a mutant are its parent's."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        return {**plain, "weights": [asdict(weight) for weight in self.weights]}

    @cached_property
    def object_digest(self) -> str:
        """Identity of the layer apart from where it stands: kind, configuration and weights."""
        return digest_of(
            self.kind,
            _nameless(self.config),
            self.origin,
            [weight.digest for weight in self.weights],
        )


@dataclass(frozen=True)
class Model:
    """A graph of layers in an order in which they can be computed."""

    name: str
    inputs: tuple[Input, ...]
    layers: tuple[Layer, ...]
    outputs: tuple[Ref, ...]
    dialect: str

    def __post_init__(self) -> None:
        known = {item.name for item in self.inputs}
        for layer in self.layers:
            missing = [name for name in layer.inputs if name not in known]
            if missing or layer.name in known:
                raise ProtocolError(
                    f"layer {layer.name!r} is named twice"
                    if layer.name in known
                    else f"layer {layer.name!r} reads {missing[0]!r}, which comes later or never"
                )
            known.add(layer.name)
        if not self.outputs or any(ref.producer not in known for ref in self.outputs):
            raise ProtocolError(f"model {self.name!r} has no output that its layers compute")

    def layer(self, name: str) -> Layer:
        return next(layer for layer in self.layers if layer.name == name)

    def last_layer(self) -> Layer | None:
        """The layer that gives the first output; None: an input does."""
        producer = self.outputs[0].producer
        return next((layer for layer in self.layers if layer.name == producer), None)

    def batch_axis(self, ref: Ref) -> int | None:
        """Where the instances of a tensor lie; None: all instances share it."""
        given = next((item for item in self.inputs if item.name == ref.producer), None)
        if given is not None:
            return given.batch
        return self.layer(ref.producer).batch_axis(ref.index)

    @property
    def weight_count(self) -> int:
        """Numbers held by all weights, shared ones counted once."""
        seen: dict[str, int] = {}
        for layer in self.layers:
            for weight in layer.weights:
                size = 1
                for n in weight.shape:
                    size *= n
                seen[f"{layer.shares or layer.name}/{weight.name}"] = size
        return sum(seen.values())

    def digests(self) -> dict[str, str]:
        """Merkle digest of every layer: what it computes, as a function of the model inputs."""
        done = {item.name: digest_of("input", i) for i, item in enumerate(self.inputs)}

        def known(ref: Ref) -> Ref:
            return Ref(done[ref.producer], ref.index)

        for layer in self.layers:
            done[layer.name] = digest_of(
                layer.object_digest,
                with_refs(layer.args, known),
                with_refs(layer.kwargs, known),
            )
        return done

    @property
    def identity(self) -> str:
        """The same for two models of the same layers with the same weights, by whatever names."""
        return digest_of(sorted(self.digests().values()))

    def last_use(self) -> dict[str, int]:
        """For each tensor producer the position of the last layer that reads it."""
        uses = dict.fromkeys((ref.producer for ref in self.outputs), len(self.layers))
        for position in reversed(range(len(self.layers))):
            for name in self.layers[position].inputs:
                uses.setdefault(name, position)
        return uses

    def to_json(self) -> Json:
        """Plain data, made once. It is not to be changed: layers share theirs with other models."""
        return self._json

    @cached_property
    def _json(self) -> Json:
        return {
            "name": self.name,
            "inputs": [asdict(item) for item in self.inputs],
            "layers": [layer.json for layer in self.layers],
            "outputs": [asdict(ref) for ref in self.outputs],
            "dialect": self.dialect,
        }

    @staticmethod
    def from_json(data: Json) -> Model:
        """Rebuild a model that came from another process; what does not fit is refused."""
        try:
            return Model(
                name=str(data["name"]),
                inputs=tuple(map(_input_from_json, data["inputs"])),
                layers=tuple(_layer_from_json(item) for item in data["layers"]),
                outputs=tuple(Ref(str(r["producer"]), int(r["index"])) for r in data["outputs"]),
                dialect=str(data["dialect"]),
            )
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ProtocolError(f"not a model: {error}") from error


def _input_from_json(data: Json) -> Input:
    shape, batch = tuple(data["shape"]), data["batch"]
    if not all(n is None or _is_size(n) for n in (*shape, batch)):
        raise ValueError(f"input {data['name']!r} has shape {shape} and batch axis {batch}")
    return Input(str(data["name"]), shape, str(data["dtype"]), batch)


def _layer_from_json(data: Json) -> Layer:
    weights = tuple(
        Weight(str(w["name"]), str(w["digest"]), tuple(int(n) for n in w["shape"]))
        for w in data["weights"]
    )
    batch = tuple(data.get("batch", ()))
    layer = Layer(**{**data, "weights": weights, "batch": batch})
    texts = (layer.name, layer.kind, "" if layer.shares is None else layer.shares)
    tables = (layer.config, layer.kwargs, layer.origin)
    if not (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(table, Mapping) for table in tables)
        and all(axis is None or _is_size(axis) for axis in batch)
    ):
        raise ValueError(f"layer {layer.name!r} has a field of another type")
    return layer


def _is_size(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def find_refs(structure: Json) -> Iterator[Ref]:
    """All tensor references inside call arguments."""
    if isinstance(structure, Mapping):
        if REF in structure:
            producer, index = structure[REF]
            yield Ref(producer, index)
        else:
            for value in structure.values():
                yield from find_refs(value)
    elif isinstance(structure, list | tuple):
        for value in structure:
            yield from find_refs(value)


def with_refs(structure: Json, change: Callable[[Ref], Ref]) -> Json:
    """Call arguments with every tensor reference in them changed, in call order."""
    if isinstance(structure, Mapping):
        if REF in structure:
            ref = change(Ref(*structure[REF]))
            return {REF: [ref.producer, ref.index]}
        return {key: with_refs(value, change) for key, value in structure.items()}
    if isinstance(structure, list | tuple):
        return [with_refs(value, change) for value in structure]
    return structure


def digest_of(*parts: Json) -> str:
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _nameless(config: Mapping[str, Json]) -> Json:
    """A configuration without the names of layers, which change nothing that is computed."""
    return {key: value for key, value in config.items() if key != "name"}
