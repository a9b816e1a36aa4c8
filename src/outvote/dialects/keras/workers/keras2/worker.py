"""The worker for Keras 2 on Theano, TensorFlow and MXNet: runs models and layers.

It reads no model files: Keras 3 reads those of Keras 2 too, and hands on neutral data.
"""

from __future__ import annotations

import importlib
import os
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

from outvote.core.arrays import Array
from outvote.core.model import Model, digest_of
from outvote.core.states import State, pack, unpack
from outvote.dialects.keras.workers.keras2 import shims as keras2_shims
from outvote.worker.main import Context, Refused, Reply
from outvote.worker.scripts import run_script, version_of


def create(context: Context) -> Keras2Worker:
    """Import Keras 2 on the backend that the settings name, and apply the user's scripts."""
    settings = context.settings
    if settings["custom"]:
        raise Refused("custom layers cannot be run on Keras 2; leave classic targets out")
    os.environ["KERAS_BACKEND"] = settings["backend"]
    keras2_shims.before_import(settings["backend"])
    importlib.import_module("keras")
    keras2_shims.after_import()
    if settings["setup"]:
        run_script(Path(settings["setup"]), "setup script", "__main__")
    return Keras2Worker(context)


class Keras2Worker:
    """Holds the imported Keras, the last model as a function, and at most one session."""

    def __init__(self, context: Context) -> None:
        from outvote.dialects.keras.workers.keras2.graph import forget

        self._context = context
        self._backend: str = context.settings["backend"]
        self._ready: tuple[str, Any] = ("", None)
        self._session: _Session | None = None
        forget()

    def describe(self) -> dict[str, Any]:
        import keras

        library = {"theano": "Theano"}.get(self._backend, self._backend)
        return {
            "versions": {
                "keras": keras.__version__,
                library.lower(): version_of(library),
                "numpy": version_of("numpy"),
            },
            "precision": {"floatx": keras.backend.floatx(), **self._compiler()},
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
        }

    def do_read(self, arrays: list[Array], path: str, weights: str | None) -> Reply:
        raise NotImplementedError("model files are read by Keras 3")

    def do_run(
        self,
        arrays: list[Array],
        model: Any,
        inputs: list[str],
        batch: int,
        jitter: int | None = None,
        keep: bool = False,
    ) -> Reply:
        """Run a model on stored inputs, batch by batch; `keep` changes nothing here."""
        import numpy as np

        parsed = Model.from_json(model)
        data = [self._context.blobs.get(digest) for digest in inputs]
        starts = range(0, len(data[0]), batch) if len(data[0]) else [0]
        self._context.begin(len(starts))
        parts: list[list[Array]] = []
        names: list[str] = []
        for start in starts:
            feeds = [np.array(item[start : start + batch]) for item in data]
            program = self._program(parsed, feeds, jitter)
            states, names = program([(feed, None) for feed in feeds])
            parts.append([array for array, _ in states])
            self._context.step()
        whole = [np.concatenate(part) for part in zip(*parts, strict=True)]
        return {"dtypes": names}, whole

    def do_open(self, arrays: list[Array], model: Any) -> Reply:
        """Begin a session in which layers are computed one at a time; arrays are the inputs."""
        parsed = Model.from_json(model)
        self._context.begin(len(parsed.layers))
        self._ready = ("", None)
        self._session = _Session(parsed, arrays, self._context)
        return {}, ()

    def do_step(self, arrays: list[Array], layer: str, given: list[Any] | None) -> Reply:
        """Compute a layer on this target's own tensors and, if given, on another target's."""
        assert self._session is not None
        reply = self._session.step(layer, arrays, given)
        self._context.step()
        return reply

    def do_call(self, arrays: list[Array], layer: str, given: list[Any]) -> Reply:
        """Compute a layer on the tensors given with the request alone."""
        assert self._session is not None
        return self._session.call(layer, arrays, given)

    def do_close(self, arrays: list[Array]) -> Reply:
        self._session = None
        return {}, ()

    def _program(self, model: Model, feeds: list[Array], jitter: int | None) -> Any:
        from outvote.dialects.keras.workers.keras2.graph import Builder, forget, whole

        shapes = [feed.shape[1:] for feed in feeds]
        key = digest_of(model.digests(), model.to_json()["outputs"], jitter, shapes)
        if self._ready[0] != key:
            forget()
            builder = Builder(self._context.blobs, self._context.enter)
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

    def __init__(self, model: Model, inputs: list[Array], context: Context) -> None:
        self._context = context
        self._layers = {layer.name: (i, layer) for i, layer in enumerate(model.layers)}
        self._last_use = model.last_use()
        self._ready: tuple[Any, Any] = (None, None)  # the program of the layer in progress
        self._states: dict[str, list[State]] = {
            item.name: [(array, None)] for item, array in zip(model.inputs, inputs, strict=True)
        }

    def step(self, name: str, arrays: list[Array], given: list[Any] | None) -> Reply:
        """As keras_session.Session.step: own tensors (kept), then the given ones."""
        position, layer = self._layers[name]
        try:
            feeds = [self._states[ref.producer][ref.index] for ref in layer.refs()]
            own, dtypes = self._run(name, feeds)
            self._states[name] = own
        except Exception:
            if given is None:
                raise
            own, dtypes = [], []
        for producer in layer.inputs:
            if self._last_use[producer] == position:
                self._states.pop(producer, None)
        header, sent = pack(own)
        reply = {"own": header, "dtypes": dtypes}
        if given is None:
            return reply, sent
        also, more = self.call(name, arrays, given)
        return {**reply, **also, "own_dtypes": dtypes}, [*sent, *more]

    def call(self, name: str, arrays: list[Array], given: list[Any]) -> Reply:
        outputs, dtypes = self._run(name, unpack(given, arrays))
        header, sent = pack(outputs)
        return {"isolated": header, "dtypes": dtypes}, sent

    def _run(self, name: str, feeds: list[State]) -> tuple[list[State], list[str]]:
        from outvote.dialects.keras.workers.keras2.graph import Builder, alone, forget

        form = [array.shape[1:] for array, _ in feeds]
        if self._ready[0] != (name, form):
            forget()  # one layer at a time: a graph that grows slows TensorFlow down
            builder = Builder(self._context.blobs, self._context.enter)
            layer = replace(self._layers[name][1], shares=None)
            self._ready = ((name, form), alone(layer, builder, feeds))
        result: tuple[list[State], list[str]] = self._ready[1](feeds)
        return result
