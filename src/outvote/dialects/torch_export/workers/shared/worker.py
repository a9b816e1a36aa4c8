"""The worker around a runtime: reads archives, runs models and single calls. It judges nothing."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

from outvote.core import protocol as ask
from outvote.core.model import Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.dialects.torch_export.nouns.node import paths_of
from outvote.dialects.torch_export.workers.shared.defaults import defaults_of
from outvote.dialects.torch_export.workers.shared.engine import CallEngine, GraphCompiler
from outvote.dialects.torch_export.workers.shared.read import read
from outvote.dialects.torch_export.workers.shared.save import save
from outvote.worker.main import Context, Handlers
from outvote.worker.portions import first_rows, joined, portions
from outvote.worker.scripts import run_script, version_of

_NO_KERNEL = re.compile(r'"\w+" not implemented for ')  # as ATen says it of a type


class TorchWorker:
    """Holds an engine and at most one session in which calls are made one at a time."""

    def __init__(
        self,
        context: Context,
        runtime: GraphCompiler | None = None,
        device: str = "cpu",
        precision: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        torch.set_num_threads(1)
        setup = context.settings.setup
        if setup is not None:
            run_script(setup, context, "setup script", "__main__")
        self.kind = f"a worker for PyTorch programs ({context.settings.mode})"
        self._context = context
        self._runtime = runtime
        self._precision = precision
        self._engine = CallEngine(runtime, context.blobs, context.enter, device)
        self._session: CallSession | None = None

    @property
    def handlers(self) -> Handlers:
        return {
            ask.Read: self.read,
            ask.Save: self.save,
            ask.RunModel: self.run,
            ask.Forget: self.forget,
            ask.OpenSession: self.open_session,
            ask.StepLayer: self.step,
            ask.CallLayer: self.call,
            ask.CloseSession: self.close_session,
            ask.TellDefaults: self.tell_defaults,
        }

    def is_gap(self, error: Exception) -> bool:
        if _NO_KERNEL.search(str(error)):
            return True
        return self._runtime is not None and self._runtime.is_gap(error)

    def describe(self) -> ask.Hello:
        libraries = ("torch", *(self._runtime.libraries if self._runtime is not None else ()))
        return ask.Hello(
            versions={name: version_of(name) for name in dict.fromkeys(libraries)},
            precision=dict(self._precision),
            python=platform.python_version(),
            platform=f"{platform.system()} {platform.machine()}",
        )

    def read(self, request: ask.Read) -> ask.ModelRead:
        path = self._context.placed(request.file, self._context.folder)
        try:
            return read(path, self._context.blobs)
        finally:
            path.unlink()

    def save(self, request: ask.Save) -> ask.Saved:
        """Write a neutral model as a `.pt2` file."""
        path = self._context.folder / "model.pt2"
        return ask.Saved(file=self._context.taken(save(request.model, self._context.blobs, path)))

    def run(self, request: ask.RunModel) -> ask.Ran:
        """Run a model on stored inputs, batch by batch; `jitter` (a seed) moves every tensor."""
        model = request.model
        data = [self._context.blobs.get(digest) for digest in request.inputs]
        shown = [r for name in request.watch for r in _tensors(model, name)]
        divided = portions(model, data, request.batch)
        self._context.begin(len(divided) * (1 if request.jitter is None else len(model.layers)))
        first, *rest = divided
        found = [self._part(model, first, request.jitter, shown)]
        found += [self._part(model, part, request.jitter, ()) for part in rest]
        outputs = [joined([part[place] for part in found]) for place in range(len(model.outputs))]
        hidden = iter(found[0][len(outputs) :])
        watched = {
            name: tuple(first_rows(next(hidden), request.rows) for _ in _tensors(model, name))
            for name in request.watch
        }
        return ask.Ran(outputs=Outputs.of(outputs), watched=watched)

    def forget(self, request: ask.Forget) -> ask.Done:
        self._engine.forget()
        return ask.Done()

    def open_session(self, request: ask.OpenSession) -> ask.Done:
        self._context.begin(len(request.model.layers))
        self._session = CallSession(self._engine, request.model, request.inputs)
        return ask.Done()

    def step(self, request: ask.StepLayer) -> ask.Stepped:
        """A call on this target's own tensors and, if given, on another target's."""
        assert self._session is not None
        own, failed = self._session.own(request.layer, required=request.given is None)
        self._context.step()
        if request.given is None:
            return ask.Stepped(own=own)
        isolated = self._session.alone(request.layer, request.given)
        return ask.Stepped(own=own, isolated=isolated, own_error=failed)

    def call(self, request: ask.CallLayer) -> ask.Called:
        assert self._session is not None
        return ask.Called(outputs=self._session.alone(request.layer, request.given))

    def close_session(self, request: ask.CloseSession) -> ask.Done:
        self._session = None
        return ask.Done()

    def tell_defaults(self, request: ask.TellDefaults) -> ask.DefaultsTold:
        """What arguments are when a call does not give them."""
        return ask.DefaultsTold(
            defaults={layer.name: defaults_of(layer.kind) for layer in request.model.layers}
        )

    def _part(
        self, model: Model, feeds: list[State], jitter: int | None, shown: Sequence[Ref]
    ) -> list[State]:
        if jitter is not None:
            return self._engine.stepped(model, feeds, jitter, self._context.step)
        found = self._engine.whole(model, feeds, shown)
        self._context.step()
        return found


class CallSession:
    """Computes a model one call at a time, each from this target's own tensors or from others."""

    def __init__(self, engine: CallEngine, model: Model, feeds: Sequence[State]) -> None:
        self._engine = engine
        self._layers = {layer.name: layer for layer in model.layers}
        self._held: dict[str, Sequence[State]] = {
            item.name: [feed] for item, feed in zip(model.inputs, feeds, strict=True)
        }

    def own(self, name: str, required: bool) -> tuple[tuple[State, ...] | None, str]:
        """What a call gives on this target's own tensors, or why it gives nothing."""
        layer = self._layers[name]
        try:
            given = [self._held[r.producer][r.index] for r in layer.refs()]
            self._held[name] = self._engine.alone(layer, given)
        except Exception as error:
            if required:
                raise
            return None, f"{type(error).__name__}: {error}"
        return tuple(self._held[name]), ""

    def alone(self, name: str, given: Sequence[State]) -> tuple[State, ...]:
        return tuple(self._engine.alone(self._layers[name], given))


def _tensors(model: Model, name: str) -> list[Ref]:
    return [Ref(name, place) for place in range(len(paths_of(model.layer(name))))]
