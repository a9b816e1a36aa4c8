"""Gradients of a program, a call or a loss, as a mode of PyTorch finds them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import compress

import torch

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import Model, digest_of
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.core.train_protocol import Beside, Leaf, Move, PullBack, PulledBack
from outvote.dialects.torch_export.workers.learn.modes import Mode
from outvote.dialects.torch_export.workers.learn.objective import ProgramWeight, parameters_of
from outvote.dialects.torch_export.workers.learn.program import (
    Came,
    Given,
    NumberProgram,
    fed,
    weight_tensors,
    without_sizes,
)
from outvote.dialects.torch_export.workers.shared.tensors import Tensor, as_state, as_tensor

_KEPT = 16  # programs


class Pullbacks:
    """The programs that were differentiated last."""

    def __init__(self, blobs: BlobStore, mode: Mode) -> None:
        self._blobs = blobs
        self._mode = mode
        self._programs: OrderedDict[str, NumberProgram] = OrderedDict()

    def forget(self) -> None:
        self._programs.clear()

    def pull(self, request: PullBack, step: Callable[[], None]) -> PulledBack:
        """The gradients that are asked for; `step` is called after every move."""
        if request.sample_weight:
            raise NotImplementedError("losses of PyTorch take no weights of instances")
        feeds = fed(request.model, request.inputs, self._blobs)
        model = without_sizes(request.model, feeds)
        pull = _Pull(self._blobs, model, feeds, request)
        program = self._program(pull, request)
        given = pull.given()
        came = program.forward(given)
        learned = [item.is_learned for item in program.parameters]
        floats = [tensor.is_floating_point() for tensor in given.feeds]
        leaves = [*compress(given.feeds, floats), *compress(given.weights, learned)]
        found = iter(program.gradients(came, leaves))
        return PulledBack(
            value=_value(came),
            outputs=_outputs(model, came),
            gradients=(
                *(
                    _leaf("", place, item.name, next(found))
                    for place, item in enumerate(model.inputs)
                    if floats[place]
                ),
                *(_of(item, next(found)) for item in program.parameters if item.is_learned),
            ),
            statistics=tuple(kept_leaves(program, came)),
            beside=tuple(_beside(program, pull, move, step) for move in request.moves),
        )

    def _program(self, pull: _Pull, request: PullBack) -> NumberProgram:
        told = [digest is not None for digest in request.cotangents]
        forms = [[list(feed.array.shape), feed.dtype] for feed in pull.feeds]
        key = digest_of(pull.model.to_json(), request.loss, told, forms)
        if key not in self._programs:
            made = NumberProgram(self._mode, pull.model, pull.given(), told, request.loss)
            self._programs[key] = made
            while len(self._programs) > _KEPT:
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        return self._programs[key]


class _Pull:
    """What one request gives a program, each time as tensors of their own."""

    def __init__(
        self, blobs: BlobStore, model: Model, feeds: Sequence[State], request: PullBack
    ) -> None:
        self.model, self.feeds = model, feeds
        self._blobs = blobs
        named = [*request.cotangents, request.truth]
        self._constants = [State(blobs.get(digest)) for digest in named if digest]

    def given(self, move: Move | None = None) -> Given:
        """With one element moved, where that is asked for."""
        parameters = parameters_of(self.model)
        feeds = [as_tensor(feed) for feed in self.feeds]
        weights = weight_tensors(parameters, self._blobs)
        if move is not None:
            moved = weights if move.layer else feeds
            moved[self._place(move, parameters)][move.index] = move.value
        learned = compress(weights, (item.is_learned for item in parameters))
        for tensor in (*filter(torch.is_floating_point, feeds), *learned):
            tensor.requires_grad_()
        return Given(feeds, weights, [as_tensor(state) for state in self._constants])

    def _place(self, move: Move, parameters: Sequence[ProgramWeight]) -> int:
        if not move.layer:
            return move.place
        places = [(item.layer, item.place) for item in parameters]
        return places.index((move.layer, move.place))


def _beside(program: NumberProgram, pull: _Pull, move: Move, step: Callable[[], None]) -> Beside:
    came = program.forward(pull.given(move))
    step()
    return Beside(_value(came), _outputs(pull.model, came))


def _value(came: Came) -> Array:
    return as_state(torch.zeros(()) if came.value is None else came.value, None).array


def _outputs(model: Model, came: Came) -> Outputs:
    pairs = zip(came.outputs, model.outputs, strict=True)
    return Outputs.of([as_state(value, model.batch_axis(ref)) for value, ref in pairs])


def kept_leaves(program: NumberProgram, came: Came) -> Iterator[Leaf]:
    """Weights that are not learned, as a run has left them."""
    kept = [item for item in program.parameters if not item.is_learned]
    return (_of(item, tensor) for item, tensor in zip(kept, came.kept, strict=True))


def _of(item: ProgramWeight, tensor: Tensor | None) -> Leaf:
    return _leaf(item.layer, item.place, item.name, tensor)


def _leaf(layer: str, place: int, name: str, tensor: Tensor | None) -> Leaf:
    if tensor is None:
        return Leaf(layer, place, name, None)
    state = as_state(tensor, None)
    return Leaf(layer, place, name, state.array, state.dtype)
