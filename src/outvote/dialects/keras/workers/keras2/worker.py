"""The worker for Keras 2 on Theano, TensorFlow and MXNet: runs models and layers.

It reads no model files: Keras 3 reads those of Keras 2 too, and hands on neutral data.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from outvote.core import protocol as ask
from outvote.core.arrays import Array
from outvote.core.model import Layer, Model, digest_of
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.dialects.keras.workers.keras2 import shims as keras2_shims
from outvote.worker.hello import hello, installed_version
from outvote.worker.main import Context, Handlers, Refused
from outvote.worker.scripts import run_setup
from outvote.worker.session import Session, Sessions


def create(context: Context) -> Keras2Worker:
    """Import Keras 2 on the backend that the settings name, and apply the user's scripts."""
    settings = context.settings
    if settings.custom:
        raise Refused("custom layers cannot be run on Keras 2; leave classic targets out")
    os.environ["KERAS_BACKEND"] = settings.backend
    keras2_shims.before_import(settings.backend)
    importlib.import_module("keras")
    keras2_shims.after_import()
    run_setup(context)
    return Keras2Worker(context)


class Keras2Worker:
    """Holds the imported Keras, the last model as a function, and at most one session."""

    kind = "Keras 2"

    def __init__(self, context: Context) -> None:
        from outvote.dialects.keras.workers.keras2.graph import forget

        self._context = context
        self._backend = context.settings.backend
        self._ready: tuple[str, Any] = ("", None)
        self._sessions = Sessions(context, self._begun)
        forget()

    @property
    def handlers(self) -> Handlers:
        return {
            ask.RunModel: self.run,
            **self._sessions.handlers,
        }

    def is_gap(self, error: Exception) -> bool:
        return False

    def describe(self) -> ask.Hello:
        import keras

        library = {"theano": "Theano"}.get(self._backend, self._backend)
        return hello(
            {
                "keras": keras.__version__,
                library.lower(): installed_version(library),
                "numpy": installed_version("numpy"),
            },
            {"floatx": keras.backend.floatx(), **self._compiler()},
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

    def _begun(self, request: ask.OpenSession) -> Session:
        self._ready = ("", None)
        return Session(request.model, request.inputs, _LayerPrograms(self._context).compute)

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


class _LayerPrograms:
    """Layers as functions, of which the last is kept."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ready: tuple[Any, Any] = (None, None)  # the program of the layer in progress

    def compute(self, layer: Layer, given: Sequence[State]) -> tuple[State, ...]:
        from outvote.dialects.keras.workers.keras2.graph import SymbolicBuilder, alone, forget

        feeds = list(given)
        form = [state.array.shape[1:] for state in feeds]
        if self._ready[0] != (layer.name, form):
            forget()  # one layer at a time: a graph that grows slows TensorFlow down
            builder = SymbolicBuilder(self._context.blobs, self._context.enter)
            self._ready = ((layer.name, form), alone(replace(layer, shares=None), builder, feeds))
        result: tuple[State, ...] = self._ready[1](feeds)
        return result
