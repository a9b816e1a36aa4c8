"""New nodes and other attributes for old ones, as one worker's ONNX has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from outvote.core.blobs import BlobStore
from outvote.core.errors import UsageError
from outvote.core.model import Input, Layer, Model, Ref, with_refs
from outvote.core.protocol import LayerAttempted, Request
from outvote.dialects.onnx.nouns import attributes
from outvote.dialects.onnx.nouns.node import Origin, opset_of, origin_of, tensors_of
from outvote.dialects.onnx.nouns.operators import ListOperators, Operator
from outvote.dialects.onnx.nouns.requests import (
    AttemptNode,
    DrawNodes,
    FormsInferred,
    GivenTensor,
    InferForms,
)
from outvote.mutate.graft import grafted
from outvote.mutate.subject import Spec, Subject
from outvote.run.pool import Ask, Pool, asker
from outvote.run.settle import ask_settled, settled

_FREE = 2  # the size of a free dimension where a node is tried
Specs = Mapping[str, tuple[Spec, ...]]


@dataclass
class OnnxTools:
    """What `outvote.mutate.tools.Tools` asks for, and what the rules of ONNX use besides."""

    blobs: BlobStore
    ask: Ask
    operators: Mapping[str, Operator]  # in their newest versions
    refused: int = 0
    _versions: dict[int, Mapping[str, Operator]] = field(default_factory=dict)

    @property
    def kinds(self) -> Collection[str]:
        return [kind for kind, found in self.operators.items() if not found.not_drawn]

    @property
    def not_covered(self) -> Mapping[str, str]:
        return {kind: found.not_drawn for kind, found in self.operators.items() if found.not_drawn}

    def operator(self, kind: str, opset: int) -> Operator | None:
        """An operator as a version of the set has it."""
        if opset not in self._versions:
            run = self._asked(ListOperators(opset=opset))
            self._versions[opset] = run.operators if run is not None else {}
        return self._versions[opset].get(kind)

    def parameters(self, layer: Layer) -> dict[str, Any]:
        """The attributes of which other values are known, as they are or by default."""
        operator = self.operator(layer.kind, opset_of(layer))
        if operator is None:
            return {}
        told = {
            item.name: layer.config.get(item.name, item.default) for item in operator.attributes
        }
        return {
            name: value
            for name, value in told.items()
            if value is not None and attributes.others(operator.name, name, value)
        }

    def others(self, layer: Layer, name: str, value: Any) -> list[Any]:
        return attributes.others(layer.kind, name, value, opset_of(layer))

    def illegal(self, layer: Layer) -> list[tuple[str, Any]]:
        operator = self.operator(layer.kind, opset_of(layer))
        if operator is None:
            return []
        return [
            (item.name, value)
            for item in operator.attributes
            for value in attributes.illegal(
                layer.kind, item.name, layer.config.get(item.name, item.default)
            )
        ]

    def variant(
        self,
        layer: Layer,
        parameters: Mapping[str, Any],
        given: Sequence[Spec],
        rng: np.random.Generator,
    ) -> Layer | None:
        found = self.varied(layer, parameters, given)
        return None if found is None else found[0]

    def varied(
        self, layer: Layer, parameters: Mapping[str, Any], given: Sequence[Spec]
    ) -> tuple[Layer, tuple[Spec, ...]] | None:
        """The node with these attributes, and what it gives; None where ONNX refuses it."""
        changed = self._with(layer, parameters)
        found = self._asked(InferForms(model=_alone(changed, given)))
        if found is None or not found.specs.get(layer.name):
            return None
        changed = replace(changed, batch=found.batch[layer.name])
        return changed, _specs(changed, found)

    def attempt(
        self, layer: Layer, parameters: Mapping[str, Any], given: Sequence[Spec]
    ) -> Request[LayerAttempted]:
        return AttemptNode(model=_alone(self._with(layer, parameters), given, free=_FREE), steps=1)

    def drawn(
        self,
        subject: Subject,
        given: Sequence[Ref],
        rng: np.random.Generator,
        *,
        nodes: int = 1,
        keep: bool = False,
        kinds: Sequence[str] = (),
    ) -> tuple[list[Layer], Specs] | None:
        """New nodes that read these tensors, the first one for sure; None where none is found."""
        origin = origin_of(subject.model.layers[0])
        request = DrawNodes(
            given=tuple(_told(subject.spec(ref)) for ref in given),
            opset=_main(origin),
            ir=origin.ir,
            seed=int(rng.integers(1 << 31)),
            nodes=nodes,
            keep=keep,
            kinds=tuple(kinds),
        )
        found = self._asked(request)
        if found is None:
            return None
        self.refused += found.refused
        layers, specs, _ = grafted(subject, given, found.model, found.specs, _stem)
        return layers, specs

    def _with(self, layer: Layer, parameters: Mapping[str, Any]) -> Layer:
        """The node with these attributes, as far as they are not what it has anyway."""
        now = self.parameters(layer)
        new = {name: value for name, value in parameters.items() if now.get(name) != value}
        return replace(layer, config={**layer.config, **new})

    def _asked(self, request: Request[Any]) -> Any:
        run = settled(self.ask, request, self.ask(request))
        self.refused += not run.ok
        return run.reply if run.ok else None


def onnx_tools(pool: Pool, reader: str) -> OnnxTools:
    """The operators that the ONNX of one worker has."""
    found = ask_settled(pool, reader, ListOperators())
    if not found.ok:
        raise UsageError(f"{reader} could not list the operators of its ONNX: {found.message}")
    return OnnxTools(pool.blobs, asker(pool, reader), found.reply.operators)


def _main(origin: Origin) -> int:
    return int(origin.opset.get("", origin.opset.get("ai.onnx", 0)))


def _stem(layer: Layer) -> str:
    return layer.kind.lower()


def _told(spec: Spec) -> GivenTensor:
    return GivenTensor(spec.shape, spec.dtype, spec.batch)


def _alone(layer: Layer, given: Sequence[Spec], free: int | None = None) -> Model:
    """A model of this node, whose inputs are what it reads; free dimensions may get a size."""
    names: dict[Ref, str] = {}
    inputs = []
    for ref, spec in zip(layer.refs(), given, strict=True):
        if ref not in names:
            names[ref] = f"x{len(names)}"
            shape = tuple(free if n is None else n for n in spec.shape)
            inputs.append(Input(names[ref], shape, spec.dtype, spec.batch))

    def renamed(ref: Ref) -> Ref:
        return Ref(names[ref])

    args, kwargs = with_refs(layer.args, renamed), with_refs(layer.kwargs, renamed)
    alone = replace(layer, args=args, kwargs=kwargs)
    outputs = tuple(tensors_of(origin_of(layer), layer.name))
    return Model("node", tuple(inputs), (alone,), outputs, dialect="onnx")


def _specs(layer: Layer, found: FormsInferred) -> tuple[Spec, ...]:
    return tuple(
        Spec(shape, dtype, layer.batch_axis(index))
        for index, (shape, dtype) in enumerate(found.specs[layer.name])
    )
