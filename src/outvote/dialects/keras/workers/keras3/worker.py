"""The worker for Keras 3 on any of its backends: reads model files, runs models and layers."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from outvote.core.arrays import Array
from outvote.core.dtypes import asks_for
from outvote.core.model import Model, digest_of
from outvote.worker.main import Context, Reply
from outvote.worker.scripts import run_script, version_of


class Backend(Protocol):
    """What a module in `backends` offers."""

    libraries: tuple[str, ...]
    modes: dict[str, Callable[..., Any]]

    def before_import(self, mode: str) -> None: ...
    def after_import(self) -> None: ...
    def precision(self, mode: str) -> dict[str, Any]: ...
    def no_gradients(self) -> AbstractContextManager[Any]: ...
    def set_wide(self, wide: bool) -> None: ...


def create(context: Context) -> KerasWorker:
    """Import Keras on the backend that the settings name, and apply the user's scripts."""
    settings = context.settings
    backend: Any = importlib.import_module(f"{__package__}.backends.{settings['backend']}")
    os.environ["KERAS_BACKEND"] = settings["backend"]
    backend.before_import(settings["mode"])
    importlib.import_module("keras")
    backend.after_import()
    if settings["setup"]:
        run_script(Path(settings["setup"]), "setup script", "__main__")
    return KerasWorker(context, backend)


class KerasWorker:
    """Holds the imported Keras, the layers built so far, and at most one stepping session."""

    def __init__(self, context: Context, backend: Backend) -> None:
        from outvote.dialects.keras.workers.keras3.graph import OutputCache, Workshop

        self._context = context
        self._backend = backend
        self._mode: str = context.settings["mode"]
        self._compile = backend.modes[self._mode]
        self._custom = self._custom_objects()
        self._workshop = Workshop(context.blobs, bool(context.settings["allow_code"]), self._custom)
        self._outputs = OutputCache()
        self._programs: dict[str, Any] = {}
        self._session: Any = None
        self._explorer: Any = None

    def describe(self) -> dict[str, Any]:
        names = ("keras", *self._backend.libraries)
        return {
            "versions": {name: version_of(name) for name in names},
            "precision": self._backend.precision(self._mode),
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
        }

    def do_read(self, arrays: list[Array], path: str, weights: str | None) -> Reply:
        """Read a model file and return it as neutral data; its weights go to the blob store."""
        from outvote.dialects.keras.workers.keras3.neutral import neutral
        from outvote.dialects.keras.workers.keras3.read import load

        allow_code = bool(self._context.settings["allow_code"])
        model = load(Path(path), Path(weights) if weights else None, self._custom, allow_code)
        with self._backend.no_gradients():
            read, specs = neutral(model, self._context.blobs)
        shapes = [list(tensor.shape) for tensor in model.outputs]
        return {"model": read.to_json(), "output_shapes": shapes, "specs": specs}, ()

    def do_catalogue(self, arrays: list[Array]) -> Reply:
        """All kinds of layers that this Keras has, with their parameters."""
        from outvote.dialects.keras.workers.keras3.catalogue import catalogue

        return catalogue(), ()

    def do_make(
        self,
        arrays: list[Array],
        kind: str,
        parameters: Any,
        given: list[Any],
        joined: bool,
        tried: bool,
    ) -> Reply:
        """What a layer would be on tensors of these shapes."""
        from outvote.dialects.keras.workers.keras3.catalogue import make

        with self._backend.no_gradients():
            return make(kind, parameters, given, joined, tried)

    def do_save(self, arrays: list[Array], model: Any, path: str) -> Reply:
        """Write a neutral model as a `.keras` file."""
        from outvote.dialects.keras.workers.keras3.neutral import save

        save(Model.from_json(model), self._workshop, Path(path))
        return {}, ()

    def do_run(
        self,
        arrays: list[Array],
        model: Any,
        inputs: list[str],
        batch: int,
        jitter: int | None = None,
        keep: bool = False,
        watch: Sequence[str] = (),
        rows: int = 1,
        exact: bool = False,
    ) -> Reply:
        """Run a model on stored inputs, batch by batch.

        `jitter` moves every tensor by one unit in the last place (a seed); `keep` re-uses and
        keeps layer outputs across requests, in eager mode. Then the first `rows` of what the
        layers to `watch` gave come back too, behind the outputs. `exact` is for models in
        float64: Keras narrows steps of them to float32 unless that is its default type.
        """
        import keras

        usual = keras.config.floatx()
        keras.config.set_floatx("float64" if exact else usual)
        try:
            return self._run(model, inputs, batch, jitter, keep, watch, rows)
        finally:
            keras.config.set_floatx(usual)

    def _run(
        self,
        model: Any,
        inputs: list[str],
        batch: int,
        jitter: int | None,
        keep: bool,
        watch: Sequence[str],
        rows: int,
    ) -> Reply:
        import numpy as np

        parsed = self._parsed(model)
        data = [self._context.blobs.get(digest) for digest in inputs]
        count = len(data[0])
        starts = range(0, count, batch) if count else [0]
        cached = keep and self._is_eager and jitter is None
        layers_each = len(parsed.layers) if self._is_eager else 1
        self._context.begin(len(starts) * layers_each)
        parts: list[list[Array]] = []
        names: list[str] = []
        watched: dict[str, Any] = {}
        seen: list[Array] = []
        with self._backend.no_gradients():
            for start in starts:
                feeds = [np.array(item[start : start + batch]) for item in data]
                if cached:
                    token = digest_of(inputs, start, batch)
                    first = start == 0
                    outputs, names, hidden = self._run_cached(
                        parsed, feeds, token, watch if first else ()
                    )
                    if first:
                        watched, seen = _watched(watch, hidden, rows)
                else:
                    outputs, names = self._program(parsed, jitter, feeds)(feeds)
                parts.append(outputs)
                if not self._is_eager:
                    self._context.step()
        whole = [
            np.concatenate(part) if len(part) > 1 else part[0] for part in zip(*parts, strict=True)
        ]
        reply = {"dtypes": names, "cache_hits": self._outputs.hits, "watched": watched}
        return reply, [*whole, *seen]

    def do_forget(self, arrays: list[Array]) -> Reply:
        """Drop every layer and output kept from earlier models."""
        from outvote.dialects.keras.workers.keras3.graph import OutputCache, Workshop

        allow_code = bool(self._context.settings["allow_code"])
        self._workshop = Workshop(self._context.blobs, allow_code, self._custom)
        self._outputs = OutputCache()
        self._programs.clear()
        return {}, ()

    def do_open(self, arrays: list[Array], model: Any) -> Reply:
        """Begin a session in which layers are computed one at a time; arrays are the inputs."""
        from outvote.dialects.keras.workers.keras3.session import Session

        parsed = self._parsed(model)
        self._context.begin(len(parsed.layers))
        self._session = Session(parsed, arrays, self._workshop, self._compile, self._context.enter)
        return {}, ()

    def do_step(self, arrays: list[Array], layer: str, given: list[Any] | None) -> Reply:
        """Compute a layer on this target's own tensors and, if given, on another target's."""
        with self._backend.no_gradients():
            reply: Reply = self._session.step(layer, arrays, given)
        self._context.step()
        return reply

    def do_call(self, arrays: list[Array], layer: str, given: list[Any]) -> Reply:
        """Compute a layer on the tensors given with the request alone."""
        with self._backend.no_gradients():
            reply: Reply = self._session.call(layer, arrays, given)
            return reply

    def do_explore(self, arrays: list[Array], action: str, **arguments: Any) -> Reply:
        """A request to the explorer of this worker (explore.py)."""
        from outvote.dialects.keras.workers.keras3.explore import Explorer

        if action == "open":
            self._explorer = Explorer(self._context, self._backend, self._workshop, **arguments)
            return self._explorer.describe(), ()
        reply: Reply = getattr(self._explorer, action)(arrays, **arguments)
        return reply

    def do_train(self, arrays: list[Array], model: Any, **arguments: Any) -> Reply:
        """Train a copy of a model and return its accuracy before, and after each epoch."""
        from outvote.dialects.keras.workers.keras3.graph import Workshop
        from outvote.dialects.keras.workers.keras3.train import train

        allow_code = bool(self._context.settings["allow_code"])
        fresh = Workshop(self._context.blobs, allow_code, self._custom)  # layers of its own
        return {"accuracy": train(self._context, fresh, self._parsed(model), **arguments)}, ()

    def do_close(self, arrays: list[Array]) -> Reply:
        self._session = None
        return {}, ()

    def do_extra(self, arrays: list[Array], module: str, call: str, **arguments: Any) -> Reply:
        """An operation that lives in a module of its own, found by its name."""
        operations = importlib.import_module(f"{__package__}.{module}")
        reply: Reply = getattr(operations, call)(self._context, **arguments)
        return reply

    def _parsed(self, model: Any) -> Model:
        """The model of a request; a backend that is narrow by default is widened for float64."""
        parsed = Model.from_json(model)
        self._backend.set_wide(asks_for(parsed, "float64"))
        return parsed

    @property
    def _is_eager(self) -> bool:
        from outvote.dialects.keras.workers.keras3.backends import eager

        return self._compile is eager

    def _program(self, model: Model, jitter: int | None, feeds: list[Array]) -> Any:
        """The model as a function of arrays in this worker's mode; the last one is kept."""
        from outvote.dialects.keras.workers.keras3.backends import to_tensor
        from outvote.dialects.keras.workers.keras3.graph import Graph, jittered

        key = digest_of(model.digests(), model.to_json()["outputs"], jitter)
        if key in self._programs:
            return self._programs[key]
        enter = self._context.enter if self._is_eager else lambda name: None
        after = self._context.step if self._is_eager else None
        graph = Graph(model, self._workshop, enter)
        if not self._is_eager:
            graph.make_all(lambda: [to_tensor(feed[:1]) for feed in feeds])

        def forward(tensors: Sequence[Any]) -> list[Any]:
            if jitter is None:
                return graph.forward(tensors, after=after)
            first = jitter and jitter * 10_007  # 0 stays 0
            moved = [jittered(t, first and first + i) for i, t in enumerate(tensors)]
            return graph.forward(moved, jitter=first and first + 100)

        compiled = self._compile(forward, graph.variables)

        def program(feeds: Sequence[Array]) -> Any:
            graph.prepare(len(feeds[0]))
            return compiled(feeds)

        self._programs.clear()
        self._programs[key] = program
        return program

    def _run_cached(
        self, model: Model, feeds: list[Array], token: str, watch: Sequence[str]
    ) -> tuple[list[Array], list[str], list[list[Any]]]:
        from outvote.dialects.keras.workers.keras3.backends import to_arrays, to_tensor
        from outvote.dialects.keras.workers.keras3.graph import Graph

        graph = Graph(model, self._workshop, self._context.enter)
        tensors = [to_tensor(feed) for feed in feeds]
        outputs, hidden = graph.forward_cached(tensors, token, self._outputs, watch)
        for _ in model.layers:
            self._context.step()
        return *to_arrays(outputs), hidden

    def _custom_objects(self) -> dict[str, Any]:
        path = self._context.settings["custom"]
        if not path:
            return {}
        import keras

        scope = run_script(Path(path), "custom file", "__custom__")
        found = {
            name: value
            for name, value in scope.items()
            if callable(value) and not name.startswith("_")
        }
        registered = keras.saving.get_custom_objects()
        return {**found, **registered}


def _watched(
    names: Sequence[str], hidden: Sequence[Sequence[Any]], rows: int
) -> tuple[dict[str, Any], list[Array]]:
    """The first rows of hidden tensors and their masks: which have one, their dtypes, arrays."""
    from outvote.core.states import pack
    from outvote.dialects.keras.workers.keras3.backends import to_arrays
    from outvote.dialects.keras.workers.keras3.graph import get_mask

    told: dict[str, Any] = {}
    arrays: list[Array] = []
    for name, tensors in zip(names, hidden, strict=True):
        values, dtypes = to_arrays([tensor[:rows] for tensor in tensors])
        masks = [get_mask(tensor) for tensor in tensors]
        states = [
            (value, None if mask is None else to_arrays([mask[:rows]])[0][0])
            for value, mask in zip(values, masks, strict=True)
        ]
        header, flat = pack(states)
        told[name] = {"masked": header, "dtypes": dtypes}
        arrays += flat
    return told, arrays
