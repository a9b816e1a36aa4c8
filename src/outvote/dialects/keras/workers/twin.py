"""A Keras model that somebody has transformed or exported.

The transformation stands in `twins`. Whatever model is run, whole, cut off or a layer alone, is
transformed first; so localisation and minimiser show what the tool does.
"""

from __future__ import annotations

import importlib
import re
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

from outvote.core import protocol as ask
from outvote.core.arrays import Array
from outvote.core.cuts import one_layer
from outvote.core.model import Layer, Model, Ref, digest_of
from outvote.core.states import State
from outvote.dialects.keras.nouns.twins import FILES, PRECISION
from outvote.dialects.keras.workers.keras3.worker import KerasWorker, create_in, import_keras
from outvote.worker.engine import run_model, stepped
from outvote.worker.hello import hello
from outvote.worker.main import Context, Handlers
from outvote.worker.session import Session, Sessions

_GAPS = re.compile(
    r"[Nn]ot supported|[Uu]nsupported|[Nn]ot implemented|No conversion rule|"
    r"neither a custom op nor a flex op|NOT_IMPLEMENTED"
)
_KEPT = 64
Forward = Callable[[Sequence[Array]], Sequence[Array]]


def stand_by(backend: str, mode: str) -> None:
    import_keras(backend, "eager")


def create(context: Context) -> TwinWorker:
    return TwinWorker(context, create_in(context, "eager"))


class TwinWorker:
    """Reads and writes models as Keras does; what it runs is transformed."""

    def __init__(self, context: Context, plain: KerasWorker) -> None:
        self._context = context
        self._plain = plain
        self._name = context.settings.mode
        self.kind = f"Keras with {self._name}"
        self._engine = TwinEngine(self._name, plain, context)
        self._sessions = Sessions(context, self._begun)

    @property
    def handlers(self) -> Handlers:
        kept = (ask.Read, ask.Save, ask.TellDefaults)
        return {
            **{kind: self._plain.handlers[kind] for kind in kept},
            ask.RunModel: self.run,
            ask.Forget: self.forget,
            **self._sessions.handlers,
        }

    def is_gap(self, error: Exception) -> bool:
        return self._plain.is_gap(error) or bool(_GAPS.search(str(error)))

    def describe(self) -> ask.Hello:
        told = self._plain.describe()
        coarse = PRECISION.get(self._name)
        return hello(told.versions, {"inference": coarse} if coarse else told.precision)

    def run(self, request: ask.RunModel) -> ask.Ran:
        return run_model(self._context, self._engine, request, lambda layer: [Ref(layer.name)])

    def forget(self, request: ask.Forget) -> ask.Done:
        self._engine.forget()
        return ask.Done()

    def _begun(self, request: ask.OpenSession) -> Session:
        return Session(request.model, request.inputs, self._engine.alone)


class TwinEngine:
    """The models that were transformed last."""

    def __init__(self, name: str, plain: KerasWorker, context: Context) -> None:
        self._name = name
        self._module = importlib.import_module(f"{__package__}.twins.{FILES[name]}")
        self._plain = plain
        self._context = context
        self._made: OrderedDict[str, tuple[Forward, list[bool]]] = OrderedDict()

    def forget(self) -> None:
        self._made.clear()

    def whole(self, model: Model, feeds: Sequence[State], shown: Sequence[Ref] = ()) -> list[State]:
        """The model's outputs; nothing inside can be shown."""
        assert not shown
        return [state.bare() for state in self._computed(model, [f.array for f in feeds], False)]

    def alone(self, layer: Layer, given: Sequence[State]) -> list[State]:
        """All that one layer gives on tensors of its own."""
        self._context.enter(layer.name)
        return self._computed(*one_layer("keras", layer, given), True)

    def stepped(
        self, model: Model, feeds: Sequence[State], jitter: int, after: Callable[[], None]
    ) -> list[State]:
        return stepped(self.alone, model, feeds, jitter, after)

    def _computed(self, model: Model, arrays: Sequence[Array], every: bool) -> list[State]:
        """The outputs; or everything, masks too, that the one layer of the model gives."""
        key = digest_of(model.digests(), model.to_json()["outputs"], every)
        if key not in self._made:
            self._made[key] = self._transformed(model, every)
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        run, masked = self._made[key]
        found = run(list(arrays))
        masks = iter(found[len(masked) :])
        pairs = zip(found, masked, strict=False)
        return [State(array, next(masks) if has else None) for array, has in pairs]

    def _transformed(self, model: Model, every: bool) -> tuple[Forward, list[bool]]:
        import keras

        from outvote.dialects.keras.workers.keras3.graph import Graph, get_mask

        inputs = [
            keras.Input(batch_shape=item.shape, dtype=item.dtype, name=item.name)
            for item in model.inputs
        ]
        # Layers of its own: some transformations write over them.
        graph = Graph(model, self._plain.new_workshop(), lambda name: None)
        if every:
            named = {item.name: [tensor] for item, tensor in zip(model.inputs, inputs, strict=True)}
            outputs = graph.call(model.layers[0], named)
        else:
            outputs = graph.forward(inputs)
        masks = [get_mask(tensor) for tensor in outputs] if every else [None] * len(outputs)
        shown = [mask for mask in masks if mask is not None]
        built = keras.Model(inputs if inputs[1:] else inputs[0], [*outputs, *shown], name="model")
        built._called = True  # exporters ask for it; its layers have been
        with tempfile.TemporaryDirectory(dir=self._context.folder) as folder:
            run: Forward = self._module.transformed(self._name, built, Path(folder))
        return run, [mask is not None for mask in masks]
