"""The reference as a target: our formulas in float64, rounded once, to the type of the layer.

It votes like any other, so that a fault which all libraries share is seen. What the formulas do not
cover is a gap. Masks go from the layer that makes them to the one behind it, and no further.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core import protocol as ask
from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.dialects.keras.layers import makes_masks, policy_name
from outvote.dialects.keras.reference import strict_reference
from outvote.worker.hello import hello
from outvote.worker.main import Context, Handlers
from outvote.worker.session import Session, Sessions

_PLACE = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def create(context: Context) -> ReferenceWorker:
    return ReferenceWorker(context)


class ReferenceWorker:
    """Computes layers that our formulas cover."""

    kind = "the reference"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._sessions = Sessions(context, self._begun)

    @property
    def handlers(self) -> Handlers:
        return {
            ask.RunModel: self.run,
            ask.Forget: lambda request: ask.Done(),
            **self._sessions.handlers,
        }

    def is_gap(self, error: Exception) -> bool:
        return False

    def describe(self) -> ask.Hello:
        return hello({"numpy": np.__version__}, {})

    def run(self, request: ask.RunModel) -> ask.Ran:
        model = request.model
        self._context.begin(len(model.layers))
        states: dict[str, list[State]] = {}
        for item, digest in zip(model.inputs, request.inputs, strict=True):
            states[item.name] = [State.fed(np.array(self._context.blobs.get(digest)), item)]
        behind_masks: set[str] = set()  # what such layers make of the masks is not known here
        for place, layer in enumerate(model.layers):
            self._context.enter(layer.name)
            if behind_masks.intersection(layer.inputs):
                raise NotImplementedError("masks that go further than one layer are not covered")
            if any(states[r.producer][r.index].mask is not None for r in layer.refs()):
                behind_masks.add(layer.name)
            found = self._compute(layer, [states[r.producer][r.index] for r in layer.refs()])
            if request.jitter is not None:
                rng = np.random.default_rng([request.jitter, place])
                found = [_moved(state, rng) for state in found]
            states[layer.name] = found
            self._context.step()
        outputs = Outputs.of(states[ref.producer][ref.index] for ref in model.outputs)
        watched = {
            name: tuple(_first(state, request.rows) for state in states[name])
            for name in request.watch
        }
        return ask.Ran(outputs=outputs, watched=watched)

    def _begun(self, request: ask.OpenSession) -> Session:
        return Session(request.model, request.inputs, self._compute)

    def _compute(self, layer: Layer, given: Sequence[State]) -> list[State]:
        if any(state.mask is not None for state in given) and makes_masks(layer):
            raise NotImplementedError("masks of masked tensors are not covered")
        weights = [np.asarray(self._context.blobs.get(w.digest)) for w in layer.weights]
        found = strict_reference(layer, weights, given)
        if found is None:
            raise NotImplementedError(f"no formula covers this {layer.kind}")
        if any(array.dtype.kind != "f" for array in found):
            raise NotImplementedError(f"the type that {layer.kind} gives is the library's choice")
        dtype = _dtype(layer)
        mask = _mask(layer, given[0]) if makes_masks(layer) else None
        return [State(_rounded(array, dtype), mask, dtype) for array in found]


def _dtype(layer: Layer) -> str:
    """The type that a layer computes in; of a mixed policy, the narrow one."""
    return (policy_name(layer.config.get("dtype")) or "float32").removeprefix("mixed_")


def _mask(layer: Layer, given: State) -> Array:
    if layer.kind == "Masking":
        return np.asarray(np.any(given.array != layer.config["mask_value"], axis=-1))
    return np.asarray(given.array != 0)


def _rounded(array: Array, dtype: str) -> Array:
    """To the nearest number of the type; NumPy has no bfloat16, so it is held in float32."""
    with np.errstate(over="ignore"):
        if dtype != "bfloat16":
            return array.astype(dtype)
        narrow = np.ascontiguousarray(array, np.float32)
        bits = narrow.view(np.uint32)
        even = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        cut = (even & np.uint32(0xFFFF0000)).view(np.float32)
        return np.where(np.isfinite(narrow), cut, narrow)


def _moved(state: State, rng: np.random.Generator) -> State:
    """By one last place, up or down: the noise floor."""
    step = _PLACE[state.dtype] * rng.choice([-1.0, 1.0], state.array.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        return state.but(_rounded(state.array.astype(np.float64) * (1 + step), state.dtype))


def _first(state: State, rows: int) -> State:
    mask = None if state.mask is None else state.mask[:rows]
    return State(state.array[:rows], mask, state.dtype)
