"""The worker for Keras 2 on Theano, TensorFlow and MXNet: runs models and layers.

It reads no model files: Keras 3 reads those of Keras 2 too, and hands on neutral data.
"""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from outvote.core import protocol as ask
from outvote.core.arrays import Array
from outvote.core.model import Model, digest_of
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.dialects.keras.workers.keras2 import shims as keras2_shims
from outvote.worker.main import Context, Handlers, Refused
from outvote.worker.scripts import run_script, version_of


def create(context: Context) -> Keras2Worker:
    """Import Keras 2 on the backend that the settings name, and apply the user's scripts."""
    settings = context.settings
    if settings.custom:
        raise Refused("custom layers cannot be run on Keras 2; leave classic targets out")
    os.environ["KERAS_BACKEND"] = settings.backend
    keras2_shims.before_import(settings.backend)
    importlib.import_module("keras")
    keras2_shims.after_import()
    if settings.setup:
        run_script(settings.setup, context, "setup script", "__main__")
    return Keras2Worker(context)


class Keras2Worker:
    """Holds the imported Keras, the last model as a function, and at most one session."""

    kind = "Keras 2"

    def __init__(self, context: Context) -> None:
        from outvote.dialects.keras.workers.keras2.graph import forget

        self._context = context
        self._backend = context.settings.backend
        self._ready: tuple[str, Any] = ("", None)
        self._session: _Session | None = None
        forget()

    @property
    def handlers(self) -> Handlers:
        return {
            ask.RunModel: self.run,
            ask.OpenSession: self.open_session,
            ask.StepLayer: self.step,
            ask.CallLayer: self.call,
            ask.CloseSession: self.close_session,
        }

    def is_gap(self, error: Exception) -> bool:
        return False

    def describe(self) -> ask.Hello:
        import keras

        library = {"theano": "Theano"}.get(self._backend, self._backend)
        return ask.Hello(
            versions={
                "keras": keras.__version__,
                library.lower(): version_of(library),
                "numpy": version_of("numpy"),
            },
            precision={"floatx": keras.backend.floatx(), **self._compiler()},
            python=platform.python_version(),
            platform=f"{platform.system()} {platform.machine()}",
        )

    def run(self, request: ask.RunModel) -> ask.Ran:
        """Nothing is kept between requests here, so that no layer can be watched."""
        import numpy as np

        batch = request.batch
        data = [self._context.blobs.get(digest) for digest in request.inputs]
        starts = range(0, len(data[0]), batch) if len(data[0]) else [0]
        self._context.begin(len(starts))
        parts: list[list[Array]] = []
        names: list[str] = []
        for start in starts:
            feeds = [np.array(item[start : start + batch]) for item in data]
            program = self._program(request.model, feeds, request.jitter)
            states = program([State(feed) for feed in feeds])
            names = [state.dtype for state in states]
            parts.append([state.array for state in states])
            self._context.step()
        whole = tuple(np.concatenate(part) for part in zip(*parts, strict=True))
        return ask.Ran(outputs=Outputs(whole, tuple(names)))

    def open_session(self, request: ask.OpenSession) -> ask.Done:
        self._context.begin(len(request.model.layers))
        self._ready = ("", None)
        self._session = _Session(request.model, request.inputs, self._context)
        return ask.Done()

    def step(self, request: ask.StepLayer) -> ask.Stepped:
        assert self._session is not None
        reply = self._session.step(request.layer, request.given)
        self._context.step()
        return reply

    def call(self, request: ask.CallLayer) -> ask.Called:
        assert self._session is not None
        return ask.Called(outputs=self._session.call(request.layer, request.given))

    def close_session(self, request: ask.CloseSession) -> ask.Done:
        self._session = None
        return ask.Done()

    def _program(self, model: Model, feeds: list[Array], jitter: int | None) -> Any:
        from outvote.dialects.keras.workers.keras2.graph import SymbolicBuilder, forget, whole

        shapes = [feed.shape[1:] for feed in feeds]
        key = digest_of(model.digests(), model.to_json()["outputs"], jitter, shapes)
        if self._ready[0] != key:
            forget()
            builder = SymbolicBuilder(self._context.blobs, self._context.enter)
            self._ready = (key, whole(model, builder, feeds, jitter))
            self._context.enter("")
        return self._ready[1]

    def _compiler(self) -> dict[str, Any]:
        if self._backend != "theano":
            return {}
        import theano

        return {"cxx": theano.config.cxx or "none"}


class _Session:
    """This target's own tensors so far; each is dropped after its last use."""

    def __init__(self, model: Model, inputs: Sequence[State], context: Context) -> None:
        self._context = context
        self._layers = {layer.name: (i, layer) for i, layer in enumerate(model.layers)}
        self._last_use = model.last_use()
        self._ready: tuple[Any, Any] = (None, None)  # the program of the layer in progress
        self._states: dict[str, list[State]] = {
            item.name: [state] for item, state in zip(model.inputs, inputs, strict=True)
        }

    def step(self, name: str, given: Sequence[State] | None) -> ask.Stepped:
        """As keras3.session.Session.step: own tensors (kept), then the given ones."""
        position, layer = self._layers[name]
        own: tuple[State, ...] | None = None
        failed = ""
        try:
            own = self._run(name, [self._states[ref.producer][ref.index] for ref in layer.refs()])
            self._states[name] = list(own)
        except Exception as error:
            if given is None:
                raise
            failed = f"{type(error).__name__}: {error}"
        for producer in layer.inputs:
            if self._last_use[producer] == position:
                self._states.pop(producer, None)
        isolated = None if given is None else self.call(name, given)
        return ask.Stepped(own=own, isolated=isolated, own_error=failed)

    def call(self, name: str, given: Sequence[State]) -> tuple[State, ...]:
        return self._run(name, list(given))

    def _run(self, name: str, feeds: list[State]) -> tuple[State, ...]:
        from outvote.dialects.keras.workers.keras2.graph import SymbolicBuilder, alone, forget

        form = [state.array.shape[1:] for state in feeds]
        if self._ready[0] != (name, form):
            forget()  # one layer at a time: a graph that grows slows TensorFlow down
            builder = SymbolicBuilder(self._context.blobs, self._context.enter)
            layer = replace(self._layers[name][1], shares=None)
            self._ready = ((name, form), alone(layer, builder, feeds))
        result: tuple[State, ...] = self._ready[1](feeds)
        return result
