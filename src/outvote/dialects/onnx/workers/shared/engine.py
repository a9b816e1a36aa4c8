"""Runs neutral models on a runtime: as one graph, or node by node."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import Input, Layer, Model, Ref, Weight, digest_of, find_refs, with_refs
from outvote.core.states import State
from outvote.dialects.onnx.nouns.node import WEIGHT, origin_of, tensors_of
from outvote.dialects.onnx.workers.shared.assemble import assemble, total_bytes
from outvote.dialects.onnx.workers.shared.runtime import Program, Runtime
from outvote.worker.engine import stepped

_KEPT = 512  # programs, or as many more as their constants take this many bytes
_KEPT_BYTES = 128 << 20
_MOST_KEPT = 8192
_NODE = "node"
_COUNTS = ("int32", "int64")
_FEW = 64


@dataclass
class NodeEngine:
    """A runtime with the programs that it has loaded last."""

    runtime: Runtime
    blobs: BlobStore
    enter: Callable[[str], None]

    def __post_init__(self) -> None:
        self._programs: OrderedDict[str, Program] = OrderedDict()
        self._sizes: dict[str, int] = {}

    def whole(self, model: Model, feeds: Sequence[State], shown: Sequence[Ref] = ()) -> list[State]:
        """The model's outputs as the runtime computes them in one graph, then those to be shown."""
        return _all_there(self._whole(model, feeds, shown))

    def _whole(
        self, model: Model, feeds: Sequence[State], shown: Sequence[Ref]
    ) -> list[State | None]:
        fed = _fed(model, feeds) if self.runtime.fixed else model
        key = digest_of(fed.to_json(), [[r.producer, r.index] for r in shown])
        found = self._program(key, lambda: fed, shown).run(feeds)
        return _placed(found, [model.batch_axis(r) for r in (*model.outputs, *shown)])

    def everything(self, model: Model, feeds: Sequence[State]) -> dict[str, list[State]]:
        """What layers give, by a run of the whole graph with all tensors as outputs.

        Layers are left out that a transformation took away.
        """
        shown = [r for layer in model.layers for r in tensors_of(origin_of(layer), layer.name)]
        found = iter(self._whole(model, feeds, shown)[len(model.outputs) :])
        every: dict[str, list[State]] = {}
        for layer in model.layers:
            states = [next(found) for _ in origin_of(layer).outputs]
            if not any(state is None for state in states):
                every[layer.name] = _all_there(states)
        return every

    def alone(self, layer: Layer, given: Sequence[State]) -> list[State]:
        """One layer on tensors of its own.

        Some runtimes want to know sizes and axes when they load a graph. What the layer reads of
        these was a constant of the graph, or could be followed in it; so it is a constant here.
        """
        self.enter(layer.name)
        try:
            return self._alone(layer, given)
        except Exception as error:
            if not (isinstance(error, NotImplementedError) or self.runtime.is_gap(error)):
                raise
            fixed = _with_constants(layer, given, self.blobs)
            if fixed is None:
                raise
            return self._alone(*fixed)

    def _alone(self, layer: Layer, given: Sequence[State]) -> list[State]:
        tensors = dict(zip(layer.refs(), given, strict=True))
        node = _Node.of(layer, tensors, self.runtime.free)
        found = self._program(node.key, node.model, ()).run(list(tensors.values()))
        return _all_there(_placed(found, [layer.batch_axis(i) for i in range(len(found))]))

    def stepped(
        self, model: Model, feeds: Sequence[State], jitter: int, after: Callable[[], None]
    ) -> list[State]:
        """The model's outputs, node by node, every tensor moved by one unit in the last place."""
        return stepped(self.alone, model, feeds, jitter, after)

    def forget(self) -> None:
        self._programs.clear()
        self._sizes.clear()

    def _program(self, key: str, made: Callable[[], Model], shown: Sequence[Ref]) -> Program:
        if key not in self._programs:
            model = made()
            graph = assemble(model, self.blobs, shown)
            self._programs[key] = self.runtime.load(graph)
            self._sizes[key] = total_bytes(model)
            while self._has_too_many():
                oldest, _ = self._programs.popitem(last=False)
                del self._sizes[oldest]
        self._programs.move_to_end(key)
        return self._programs[key]

    def _has_too_many(self) -> bool:
        count = len(self._programs)
        return count > _MOST_KEPT or (count > _KEPT and sum(self._sizes.values()) > _KEPT_BYTES)


def _all_there(states: Sequence[State | None]) -> list[State]:
    found = [state for state in states if state is not None]
    if len(found) < len(states):
        raise NotImplementedError("a tensor to be shown is not in the transformed graph")
    return found


def _placed(states: Sequence[State | None], axes: Sequence[int | None]) -> list[State | None]:
    """Tensors that say where their instances lie: nowhere, if they lack the axis."""
    found: list[State | None] = []
    for state, axis in zip(states, axes, strict=True):
        if state is None:
            found.append(None)
            continue
        there = axis is not None and axis < state.array.ndim
        found.append(State(state.array, None, state.dtype, axis if there else None))
    return found


def _fed(model: Model, feeds: Sequence[State]) -> Model:
    """The model announced with the sizes that it is fed."""
    inputs = tuple(
        replace(item, shape=feed.array.shape)
        for item, feed in zip(model.inputs, feeds, strict=True)
    )
    return replace(model, inputs=inputs)


@dataclass(frozen=True)
class _Node:
    """One layer as a model of its own, whose inputs are what it reads there: each tensor once.

    It goes by no name of its own: of layers that are alike, one program serves all. The model is
    made where there is no such program yet, which its key tells for a fraction of the work.
    """

    layer: Layer
    inputs: tuple[Input, ...]

    @classmethod
    def of(cls, layer: Layer, tensors: Mapping[Ref, State], free: bool) -> _Node:
        names = {found: Ref(f"x{place}") for place, found in enumerate(tensors)}
        args, kwargs = (with_refs(part, names.__getitem__) for part in (layer.args, layer.kwargs))
        inputs = tuple(
            Input(name.producer, _sizes(tensors[found].array, free), tensors[found].dtype)
            for found, name in names.items()
        )
        return cls(replace(layer, name=_NODE, args=args, kwargs=kwargs), inputs)

    @property
    def key(self) -> str:
        """The same for nodes that compute the same from tensors of the same form."""
        layer, forms = self.layer, [[item.shape, item.dtype] for item in self.inputs]
        weights, reads = [weight.digest for weight in layer.weights], [layer.args, layer.kwargs]
        return digest_of(layer.kind, layer.config, layer.origin, weights, reads, forms)

    def model(self) -> Model:
        outputs = tuple(tensors_of(origin_of(self.layer), _NODE))
        return Model("node", self.inputs, (self.layer,), outputs, dialect="onnx")


def _with_constants(
    layer: Layer, given: Sequence[State], blobs: BlobStore
) -> tuple[Layer, list[State]] | None:
    """The layer with the few integers that it reads as constants; None where there are none."""
    tensors = dict(zip(layer.refs(), given, strict=True))
    few = [r for r, t in tensors.items() if t.dtype in _COUNTS and t.array.size <= _FEW]
    if not few or len(few) == len(tensors):
        return None
    args, weights = list(layer.args), list(layer.weights)
    for place, item in enumerate(args):
        read = next(find_refs(item), None)
        if read in few:
            array = tensors[read].array
            args[place] = {WEIGHT: len(weights)}
            weights.append(Weight(f"constant{place}", blobs.put(array), array.shape))
    left = replace(layer, args=args, weights=tuple(weights))
    return left, [tensors[read] for read in left.refs()]


def _sizes(array: Array, free: bool) -> tuple[int | None, ...]:
    return (None,) * array.ndim if free else array.shape
