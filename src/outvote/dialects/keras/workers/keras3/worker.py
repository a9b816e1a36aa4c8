"""The worker for Keras 3 on any of its backends: reads model files, runs models and layers."""

from __future__ import annotations

import importlib
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from outvote.core import explore_protocol as explore
from outvote.core import protocol as ask
from outvote.core import trace_protocol as tracing
from outvote.core import zoo_protocol as zoo
from outvote.core.arrays import Array
from outvote.core.dtypes import asks_for
from outvote.core.model import Layer, Model, digest_of
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.dialects.keras.workers.keras3.learner import Learner
from outvote.worker.cache import cache_folder
from outvote.worker.hello import hello, installed_version
from outvote.worker.hidden import hidden
from outvote.worker.main import Context, Handlers
from outvote.worker.scripts import run_script, run_setup
from outvote.worker.session import Session, Sessions

if TYPE_CHECKING:
    from outvote.worker.lines import LineWatch

# What Keras imports if it is there, for wrappers, notebooks, drawings and checkpoints: a third of
# the time that a worker takes to start. OpenVINO's telemetry tells Intel of its use, in a thread,
# and a process with threads cannot divide.
_LOOKED_FOR = ("sklearn", "IPython", "cv2", "orbax", "openvino_telemetry")
_WITH_LINES = ("backend.{}", "layers", "ops")  # of Keras: which lines of them a model reaches
_READ_NOT_RUN = ("torch", "compile")  # Dynamo reads the bytecode of Keras, marks and all
_ON_JAX = ("jax", "numpy")  # the backends that compute with it


class Backend(Protocol):
    """What a module in `backends` offers."""

    libraries: tuple[str, ...]
    modes: dict[str, Callable[..., Any]]

    def before_import(self, mode: str) -> None: ...
    def after_import(self, mode: str) -> None: ...
    def precision(self, mode: str) -> dict[str, Any]: ...
    def no_gradients(self) -> AbstractContextManager[Any]: ...
    def set_wide(self, wide: bool) -> None: ...


def create(context: Context) -> KerasWorker:
    return create_in(context, context.settings.mode)


def stand_by(backend: str, mode: str) -> None:
    """Import what a worker needs, before it is told who it is."""
    import_keras(backend, mode)


def create_in(context: Context, mode: str) -> KerasWorker:
    """Import Keras on the backend that the settings name, and apply the user's scripts."""
    backend, keras = import_keras(context.settings.backend, mode)
    keras.config.disable_traceback_filtering()  # the place of an error tells causes apart
    backend.after_import(mode)
    if hasattr(backend, "hear_of_compiled"):
        backend.hear_of_compiled(context.live)
    run_setup(context)
    return KerasWorker(context, backend, mode)


def import_keras(name: str, mode: str) -> tuple[Any, Any]:
    """Our part for a backend, and Keras on it: as the first to import it in this process."""
    backend = importlib.import_module(f"{__package__}.backends.{name}")
    os.environ["KERAS_BACKEND"] = name
    backend.before_import(mode)
    with hidden(_LOOKED_FOR if name in _ON_JAX else (*_LOOKED_FOR, "jax")):
        return backend, importlib.import_module("keras")


class KerasWorker:
    """Holds the imported Keras, the layers built so far, and at most one stepping session."""

    kind = "Keras 3"

    def __init__(self, context: Context, backend: Backend, mode: str) -> None:
        from outvote.dialects.keras.workers.keras3.graph import OutputCache

        self._context = context
        self._backend = backend
        self._mode = mode
        self._compile = backend.modes[self._mode]
        self._custom = self._custom_objects()
        self._workshop = self.new_workshop()
        self._outputs = OutputCache()
        self._programs: dict[str, Any] = {}
        self._sessions = Sessions(context, self._begun)
        self._explorer: Any = None
        self._lines: LineWatch | None = None
        self._learner = Learner(context, backend, mode, self.new_workshop)

    @property
    def handlers(self) -> Handlers:
        return {
            ask.Read: self.read,
            ask.Save: self.save,
            ask.RunModel: self.run,
            ask.Forget: self.forget,
            ask.WatchRanges: self.watch_ranges,
            ask.TrainModel: self.train,
            **self._learner.handlers,
            **self._sessions.handlers,
            ask.ListKinds: self.list_kinds,
            ask.MakeLayer: self.make,
            ask.AttemptLayer: self.attempt,
            ask.RebuildLayers: self.rebuild,
            ask.TellDefaults: self.defaults,
            tracing.TraceCalls: self.trace_calls,
            tracing.ReplayCalls: self.replay_calls,
            explore.OpenExplorer: self.open_explorer,
            explore.PrepareSearch: lambda request: self._explorer.prepare(request),
            explore.SearchSeeds: lambda request: self._explorer.search(request),
            explore.KeepFinds: lambda request: self._explorer.keep(request),
            explore.AskModels: lambda request: self._explorer.ask(request),
            explore.FindGradients: lambda request: self._explorer.steepest(request),
            explore.MoveInputs: lambda request: self._explorer.move(request),
            explore.MeasureCoverage: lambda request: self._explorer.measure(request),
            zoo.BuildZooModel: self.build_zoo_model,
            zoo.TrainZooModel: self.train_zoo_model,
            zoo.LoadDataset: self.load_dataset,
            zoo.ExportModel: self.export_model,
        }

    def describe(self) -> ask.Hello:
        names = ("keras", *self._backend.libraries)
        versions = {name: installed_version(name) for name in names}
        return hello(versions, self._backend.precision(self._mode))

    def is_gap(self, error: Exception) -> bool:
        """Keras refuses some features by name, with a ValueError."""
        return bool(re.search(r"not supported (by|on|in|with) the \w+ backend", str(error)))

    def read(self, request: ask.Read) -> ask.ModelRead:
        from outvote.dialects.keras.workers.keras3.neutral import neutral
        from outvote.dialects.keras.workers.keras3.read import load

        with tempfile.TemporaryDirectory(dir=self._context.folder) as folder:
            path = self._context.placed(request.file, Path(folder))
            weights = None
            if request.weights is not None:
                weights = self._context.placed(request.weights, Path(folder))
            model = load(path, weights, self._custom, self._context.settings.allow_code)
        with self._backend.no_gradients():
            read, specs = neutral(model, self._context.blobs)
        shapes = [list(tensor.shape) for tensor in model.outputs]
        return ask.ModelRead(model=read, output_shapes=shapes, specs=specs)

    def list_kinds(self, request: ask.ListKinds) -> ask.KindsListed:
        from outvote.dialects.keras.workers.keras3.catalogue import catalogue

        return catalogue()

    def make(self, request: ask.MakeLayer) -> ask.LayerMade:
        from outvote.dialects.keras.workers.keras3.catalogue import make

        with self._backend.no_gradients():
            return make(request)

    def attempt(self, request: ask.AttemptLayer) -> ask.LayerAttempted:
        from outvote.dialects.keras.workers.keras3.attempt import attempt

        return attempt(self._context, request)

    def rebuild(self, request: ask.RebuildLayers) -> ask.LayersRebuilt:
        from outvote.dialects.keras.workers.keras3.rebuild import rebuild

        return rebuild(self._context, request)

    def defaults(self, request: ask.TellDefaults) -> ask.DefaultsTold:
        from outvote.dialects.keras.workers.keras3.rebuild import defaults

        return defaults(self._context, request)

    def watch_ranges(self, request: ask.WatchRanges) -> ask.RangesWatched:
        from outvote.dialects.keras.workers.keras3.ranges import ranges

        return ranges(self._context, self._workshop, request)

    def trace_calls(self, request: tracing.TraceCalls) -> tracing.CallsTraced:
        from outvote.dialects.keras.workers.keras3.trace import trace

        arrays = [self._context.blobs.get(digest) for digest in request.inputs]
        with self._backend.no_gradients():
            calls = trace(self._widened(request.model), self._workshop, arrays)
        return tracing.CallsTraced(calls=calls)

    def replay_calls(self, request: tracing.ReplayCalls) -> tracing.CallsReplayed:
        from outvote.dialects.keras.workers.keras3.trace import replay

        wide = any(state.dtype == "float64" for call in request.calls for state in call.tensors)
        self._backend.set_wide(wide)
        with self._backend.no_gradients():
            return tracing.CallsReplayed(calls=replay(request.calls))

    def save(self, request: ask.Save) -> ask.Saved:
        """A `.keras` file."""
        from outvote.dialects.keras.workers.keras3.neutral import save

        with tempfile.TemporaryDirectory(dir=self._context.folder) as folder:
            path = Path(folder) / "model.keras"
            save(request.model, self._workshop, path)
            return ask.Saved(file=self._context.taken(path))

    def run(self, request: ask.RunModel) -> ask.Ran:
        from outvote.dialects.keras.workers.keras3.backends import floats

        with floats(request.exact):
            watch = self._line_watch() if request.lines else None
            if watch is None:
                return self._run(request)
            watch.begin()
            ran = self._run(request)
            return replace(ran, lines=watch.reached())

    def _line_watch(self) -> LineWatch | None:
        """Marks in Keras, from the first time on that they are asked for."""
        from outvote.worker.lines import LineWatch

        backend = self._context.settings.backend
        if (backend, self._mode) == _READ_NOT_RUN:
            return None
        if self._lines is None:
            packages = [f"keras.src.{name.format(backend)}" for name in _WITH_LINES]
            folder = cache_folder("lines", otherwise=self._context.blobs.folder.parent)
            self._lines = LineWatch(packages, folder)
        return self._lines

    def _run(self, request: ask.RunModel) -> ask.Ran:
        import numpy as np

        from outvote.dialects.keras.workers.keras3.backends import typed

        model = self._widened(request.model)
        data = [self._context.blobs.get(digest) for digest in request.inputs]
        count, batch = len(data[0]), request.batch
        starts = range(0, count, batch) if count else [0]
        cached = request.keep and self._is_eager and request.jitter is None
        layers_each = len(model.layers) if self._is_eager else 1
        self._context.begin(len(starts) * layers_each)
        parts: list[list[Array]] = []
        names: list[str] = []
        watched: dict[str, tuple[State, ...]] = {}
        with self._backend.no_gradients():
            for start in starts:
                feeds = [
                    typed(np.array(array[start : start + batch]), item.dtype)
                    for item, array in zip(model.inputs, data, strict=True)
                ]
                if cached:
                    token = digest_of(request.inputs, start, batch)
                    wanted = request.watch if start == 0 else ()
                    outputs, names, hidden = self._run_cached(model, feeds, token, wanted)
                    if wanted:
                        watched = _watched(wanted, hidden, request.rows)
                else:
                    outputs, names = self._program(model, request.jitter, feeds)(feeds)
                parts.append(outputs)
                if not self._is_eager:
                    self._context.step()
        whole = tuple(
            np.concatenate(part) if len(part) > 1 else part[0] for part in zip(*parts, strict=True)
        )
        outputs_ = Outputs(whole, tuple(names))
        return ask.Ran(outputs=outputs_, watched=watched, cache_hits=self._outputs.hits)

    def forget(self, request: ask.Forget) -> ask.Done:
        from outvote.dialects.keras.workers.keras3.graph import OutputCache

        self._workshop = self.new_workshop()
        self._outputs = OutputCache()
        self._programs.clear()
        self._learner.forget()
        return ask.Done()

    def _begun(self, request: ask.OpenSession) -> Session:
        from outvote.dialects.keras.workers.keras3.programs import LayerPrograms

        model = self._widened(request.model)
        programs = LayerPrograms(model, self._workshop, self._compile, self._context.enter)

        def compute(layer: Layer, given: Sequence[State]) -> Sequence[State]:
            with self._backend.no_gradients():
                return programs.compute(layer, given)

        return Session(model, request.inputs, compute)

    def open_explorer(self, request: explore.OpenExplorer) -> explore.ExplorerOpened:
        from outvote.dialects.keras.workers.keras3.explore import Explorer

        self._backend.set_wide(any(asks_for(model, "float64") for model in request.models))
        self._explorer = Explorer(self._context, self._backend, self._workshop, request)
        opened: explore.ExplorerOpened = self._explorer.describe()
        return opened

    def train(self, request: ask.TrainModel) -> ask.ModelTrained:
        """A copy of the model is trained: layers of its own."""
        from outvote.dialects.keras.workers.keras3.train import train

        self._widened(request.model)
        return train(self._context, self.new_workshop(), request)

    def build_zoo_model(self, request: zoo.BuildZooModel) -> zoo.ZooModelBuilt:
        from outvote.dialects.keras.workers.keras3.zoo import build

        return build(self._context, request)

    def train_zoo_model(self, request: zoo.TrainZooModel) -> zoo.ZooModelTrained:
        from outvote.dialects.keras.workers.keras3.zoo import train

        return train(self._context, request)

    def export_model(self, request: zoo.ExportModel) -> zoo.ModelExported:
        from outvote.dialects.keras.workers.keras3.zoo_export import export

        return export(self._context, request)

    def load_dataset(self, request: zoo.LoadDataset) -> zoo.DatasetLoaded:
        from outvote.dialects.keras.workers.keras3.zoo import dataset

        return dataset(self._context, request)

    def _widened(self, model: Model) -> Model:
        """The model of a request; a backend that is narrow by default is widened for float64."""
        self._backend.set_wide(asks_for(model, "float64"))
        return model

    def new_workshop(self) -> Any:
        from outvote.dialects.keras.workers.keras3.graph import Workshop

        return Workshop(self._context.blobs, self._context.settings.allow_code, self._custom)

    @property
    def _predicts(self) -> bool:
        """Whether whole models go through Keras' own `model.predict`."""
        return self._mode == "predict"

    @property
    def _is_eager(self) -> bool:
        from outvote.dialects.keras.workers.keras3.backends import eager

        return self._compile is eager and not self._predicts

    def _program(self, model: Model, jitter: int | None, feeds: list[Array]) -> Any:
        """The model as a function of arrays in this worker's mode; the last one is kept."""
        from outvote.dialects.keras.workers.keras3.backends import to_tensor
        from outvote.dialects.keras.workers.keras3.graph import Graph, jittered
        from outvote.dialects.keras.workers.keras3.predict import predicted

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

        if self._predicts and jitter is None:
            compiled = predicted(graph)
        else:
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
        script = self._context.settings.custom
        if script is None:
            return {}
        import keras

        scope = run_script(script, self._context, "custom file", "__custom__")
        found = {
            name: value
            for name, value in scope.items()
            if callable(value) and not name.startswith("_")
        }
        registered = keras.saving.get_custom_objects()
        return {**found, **registered}


def _watched(
    names: Sequence[str], hidden: Sequence[Sequence[Any]], rows: int
) -> dict[str, tuple[State, ...]]:
    """The first rows of hidden tensors and their masks, by layer."""
    from outvote.dialects.keras.workers.keras3.backends import to_arrays
    from outvote.dialects.keras.workers.keras3.graph import get_mask

    found = {}
    for name, tensors in zip(names, hidden, strict=True):
        values, dtypes = to_arrays([_first(tensor, rows) for tensor in tensors])
        masks = [get_mask(tensor) for tensor in tensors]
        found[name] = tuple(
            State(value, None if mask is None else to_arrays([_first(mask, rows)])[0][0], dtype)
            for value, mask, dtype in zip(values, masks, dtypes, strict=True)
        )
    return found


def _first(tensor: Any, rows: int) -> Any:
    """Its first rows; all of them without a slice, which JAX compiles for every shape."""
    return tensor if tensor.shape[0] is not None and tensor.shape[0] <= rows else tensor[:rows]
