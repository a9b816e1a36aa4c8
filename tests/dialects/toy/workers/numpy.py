"""The worker: reads toys, runs them, steps through them."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np

from outvote.core import protocol as ask
from outvote.core.model import Layer
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.worker.main import Context, Handlers
from outvote.worker.session import Session, Sessions

from .graph import model_of
from .operators import compute


class ToyWorker:
    """Holds the session in which layers are computed one at a time."""

    kind = "the toy target"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._sessions = Sessions(context, self._begun)

    @property
    def handlers(self) -> Handlers:
        return {
            ask.Read: self.read,
            ask.Save: self.save,
            ask.RunModel: self.run,
            **self._sessions.handlers,
            ask.Forget: lambda request: ask.Done(),
        }

    def is_gap(self, error: Exception) -> bool:
        return False

    def describe(self) -> ask.Hello:
        return ask.Hello(
            versions={"numpy": np.__version__},
            precision={},
            python=platform.python_version(),
            platform="toy",
        )

    def read(self, request: ask.Read) -> ask.ModelRead:
        data = json.loads(self._context.blobs.get(request.file.digest).tobytes())
        model, _ = model_of(data, self._context.blobs.put)
        sizes = {item.name: [n or 2 for n in item.shape] for item in model.inputs}
        zeros = {n: State(np.zeros(s, np.float32)) for n, s in sizes.items()}
        states = {**zeros}
        for layer in model.layers:
            states[layer.name] = self._computed(layer, [states[n] for n in layer.inputs])
        specs = {
            layer.name: ((_shape(states[layer.name], layer.batch[0]), "float32"),)
            for layer in model.layers
        }
        shapes = [list(specs[ref.producer][0][0]) for ref in model.outputs]
        return ask.ModelRead(model=model, output_shapes=shapes, specs=specs)

    def save(self, request: ask.Save) -> ask.Saved:
        path = self._context.folder / "model.toy"
        path.write_text(json.dumps(request.model.to_json()))
        return ask.Saved(file=self._context.taken(path))

    def run(self, request: ask.RunModel) -> ask.Ran:
        arrays = [np.array(self._context.blobs.get(digest)) for digest in request.inputs]
        states = {
            item.name: State(array, batch=item.batch)
            for item, array in zip(request.model.inputs, arrays, strict=True)
        }
        self._context.begin(len(request.model.layers))
        for place, layer in enumerate(request.model.layers):
            given = [states[ref.producer] for ref in layer.refs()]
            states[layer.name] = self._computed(layer, given, request.jitter, place)
            self._context.step()
        outputs = Outputs.of(states[ref.producer] for ref in request.model.outputs)
        watched = {name: (states[name],) for name in request.watch}
        return ask.Ran(outputs=outputs, watched=watched)

    def _begun(self, request: ask.OpenSession) -> Session:
        def compute(layer: Layer, given: Sequence[State]) -> list[State]:
            return [self._computed(layer, given)]

        return Session(request.model, request.inputs, compute)

    def _computed(
        self, layer: Layer, given: Sequence[State], jitter: int | None = None, place: int = 0
    ) -> State:
        self._context.enter(layer.name)
        weights = [self._context.blobs.get(weight.digest) for weight in layer.weights]
        arrays = [*(state.array for state in given), *weights]
        found = compute(layer.kind, layer.config, arrays, layer.name)
        if jitter is not None:
            rng = np.random.default_rng([jitter, place])
            found = found * (1 + 2.0**-23 * rng.choice([-1, 1], found.shape)).astype(found.dtype)
        return State(found, batch=layer.batch[0])


def _shape(state: State, axis: int | None) -> tuple[int | None, ...]:
    return tuple(None if n == axis else size for n, size in enumerate(state.array.shape))


def create(context: Context) -> Any:
    return ToyWorker(context)
