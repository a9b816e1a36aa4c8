"""Gradients of a model, a layer, a loss or a regulariser, as this backend and mode find them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
from keras import ops

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import Model
from outvote.core.outputs import Outputs
from outvote.core.train_protocol import Beside, Leaf, Move, Named, PullBack, PulledBack
from outvote.dialects.keras.workers.keras3.backends import (
    Pulled,
    copied,
    is_float,
    to_arrays,
    to_tensor,
    typed,
)
from outvote.dialects.keras.workers.keras3.graph import Graph, Tensor, Workshop
from outvote.worker.main import Context, Refused


def loss_of(named: Named) -> Any:
    """The loss that a name or its serialised form stands for."""
    whole = named.get("config") or "module" in named
    found = keras.losses.get(dict(named) if whole else named["class_name"])
    if isinstance(found, keras.losses.Loss):
        return found
    if isinstance(found, type):
        return found()
    from keras.src.losses.losses import LossFunctionWrapper

    return LossFunctionWrapper(found)


class Pullback:
    """One number of a model, to be differentiated on any tensors."""

    def __init__(
        self, context: Context, workshop: Workshop, backend: Any, mode: str, request: PullBack
    ) -> None:
        if not hasattr(backend, "backward"):
            raise NotImplementedError(f"Keras on {backend.libraries[0]} has no gradients")
        self._blobs = context.blobs
        self._context = context
        self._request = request
        self._graph = Graph(request.model, workshop, self._enter, learning=True)
        self._loss = loss_of(request.loss) if request.loss is not None else None
        self._run = backend.backward(self._objective, self._graph.variables, mode)

    def _enter(self, layer: str) -> None:
        self._context.enter(layer)
        self._context.live()

    def pull(self, request: PullBack) -> PulledBack:
        """The gradients on the tensors of a request of the same form."""
        model = request.model
        feeds = _feeds(model, request.inputs, self._blobs)
        self._graph.make_all(lambda: [to_tensor(feed) for feed in feeds])
        if feeds and feeds[0].ndim:
            self._graph.prepare(len(feeds[0]))
        with _restored(self._graph.variables):
            pulled = self._run(feeds, self._constants(request))
        arrays, dtypes = to_arrays(pulled.results)
        return PulledBack(
            value=to_arrays([pulled.value])[0][0],
            outputs=Outputs(tuple(arrays), tuple(dtypes)),
            gradients=(*_of_inputs(model, pulled, feeds), *self._of_weights(pulled)),
            statistics=self._statistics(pulled),
            beside=tuple(self._beside(feeds, request, move) for move in request.moves),
        )

    def _beside(self, feeds: Sequence[Array], request: PullBack, move: Move) -> Beside:
        """The number with one element moved: all layers are called at once, without gradients."""
        feeds = list(feeds)
        with _restored(self._graph.variables), self._moved(feeds, move):
            given = [[to_tensor(a) for a in some] for some in (feeds, self._constants(request))]
            value, outputs = self._objective(*given)
            arrays, dtypes = to_arrays([value, *outputs])
        self._context.step()
        return Beside(arrays[0], Outputs(tuple(arrays[1:]), tuple(dtypes[1:])))

    @contextmanager
    def _moved(self, feeds: list[Array], move: Move) -> Iterator[None]:
        if not move.layer:
            feeds[move.place] = _with_element(feeds[move.place], move)
            yield
            return
        variable = self._graph.made(move.layer).weights[move.place]
        before = copied(variable)
        variable.assign(_with_element(before, move))
        try:
            yield
        finally:
            variable.assign(before)

    def _constants(self, request: PullBack) -> list[Array]:
        """Cotangents, truth and weights of instances, as far as there are any."""
        named = [*request.cotangents, request.truth, request.sample_weight]
        return [np.array(self._blobs.get(digest)) for digest in named if digest]

    def _objective(
        self, feeds: Sequence[Tensor], constants: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        request, left = self._request, iter(constants)
        # A loss may look for the logits behind what the model gives, and would not find them.
        last = {ref.producer for ref in request.model.outputs}
        outputs = self._graph.forward(feeds, jitter=request.jitter, still=last)
        terms = [
            ops.sum(output * ops.cast(next(left), output.dtype))
            for output, digest in zip(outputs, request.cotangents, strict=False)
            if digest and is_float(output)
        ]
        if self._loss is not None:
            truth = next(left)
            # Of a batch without instances Keras gives an empty array.
            terms.append(ops.sum(self._loss(truth, outputs[0], next(left, None))))
        if request.penalty:
            terms += self._penalties()
        if not terms:
            raise Refused("there is nothing to differentiate: no output is a float")
        wide = keras.config.floatx()
        return sum(ops.cast(term, wide) for term in terms[1:]) + ops.cast(terms[0], wide), outputs

    def _penalties(self) -> list[Tensor]:
        objects = {id(made): made for made in map(self._graph.made, self._owners)}
        return [
            ops.sum(loss) for made in objects.values() for loss in getattr(made, "losses", ())
        ] or [ops.zeros(())]

    @property
    def _owners(self) -> Iterator[str]:
        """Layers whose objects are their own: of shared ones the first call."""
        return (layer.name for layer in self._request.model.layers if layer.shares is None)

    def _leaves(self, values: Sequence[Any], learned: bool) -> Iterator[Leaf]:
        held = {id(v): value for v, value in zip(self._graph.variables(), values, strict=True)}
        for name in self._owners:
            for place, variable in enumerate(getattr(self._graph.made(name), "weights", ())):
                if bool(variable.trainable) == learned:
                    yield _leaf(name, place, variable.name, held[id(variable)])

    def _of_weights(self, pulled: Pulled) -> Iterator[Leaf]:
        return self._leaves(pulled.by_variables, learned=True)

    def _statistics(self, pulled: Pulled) -> tuple[Leaf, ...]:
        return tuple(self._leaves(pulled.after, learned=False))


def weights_now(graph: Graph) -> tuple[Leaf, ...]:
    """All weights of a model, copied."""
    return tuple(
        _leaf(layer.name, place, variable.name, copied(variable))
        for layer in graph.model.layers
        if layer.shares is None
        for place, variable in enumerate(getattr(graph.made(layer.name), "weights", ()))
    )


def _feeds(model: Model, digests: Sequence[str], blobs: BlobStore) -> list[Array]:
    pairs = zip(model.inputs, digests, strict=True)
    return [typed(np.array(blobs.get(digest)), item.dtype) for item, digest in pairs]


def _of_inputs(model: Model, pulled: Pulled, feeds: Sequence[Array]) -> Iterator[Leaf]:
    for place, (item, found) in enumerate(zip(model.inputs, pulled.by_feeds, strict=True)):
        if "float" in feeds[place].dtype.name:
            yield _leaf("", place, item.name, found)


def _with_element(array: Array, move: Move) -> Array:
    moved = array.copy()
    moved[move.index] = move.value
    return moved


def _leaf(layer: str, place: int, name: str, found: Any) -> Leaf:
    if found is None:
        return Leaf(layer, place, name, None)
    array = found if isinstance(found, np.ndarray) else copied(found)
    return Leaf(layer, place, name, array, array.dtype.name)


@contextmanager
def _restored(variables: Callable[[], list[Any]]) -> Iterator[None]:
    """What is differentiated learns nothing: layers are kept for the next request."""
    before = [(v, copied(v)) for v in variables() if not v.trainable]
    try:
        yield
    finally:
        for variable, value in before:
            variable.assign(value)
