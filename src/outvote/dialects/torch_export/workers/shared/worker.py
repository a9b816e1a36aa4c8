"""The worker around a runtime: reads archives, runs models and single calls. It judges nothing."""

from __future__ import annotations

import re
from functools import partial

import torch

from outvote.core import protocol as ask
from outvote.core.batch import (
    CutGraphs,
    DrawCases,
    ExposeGraphs,
    GraphsCut,
    GraphsDrawn,
    GraphsExposed,
    GraphsRan,
    RunGraphs,
)
from outvote.dialects.torch_export.nouns.node import tensors_of
from outvote.dialects.torch_export.nouns.requests import (
    BuildProgram,
    CallsDrawn,
    CallsTried,
    DrawCalls,
    ProgramBuilt,
    TryCalls,
)
from outvote.dialects.torch_export.workers.draw.forms import tried
from outvote.dialects.torch_export.workers.learn.learner import ProgramLearner
from outvote.dialects.torch_export.workers.shared.batch import (
    cut_programs,
    expose_programs,
    run_program,
)
from outvote.dialects.torch_export.workers.shared.defaults import defaults_of
from outvote.dialects.torch_export.workers.shared.engine import CallEngine, GraphCompiler
from outvote.dialects.torch_export.workers.shared.read import read
from outvote.dialects.torch_export.workers.shared.save import save
from outvote.worker.batch import answered_by, run_graphs
from outvote.worker.engine import run_model
from outvote.worker.hello import hello, installed_version
from outvote.worker.main import Context, Handlers, Refused
from outvote.worker.scripts import run_setup
from outvote.worker.session import Session, Sessions
from outvote.worker.unfit import Unfit

_NO_KERNEL = re.compile(r'"\w+" not implemented for ')  # as ATen says it of a type
# What decides by the values of tensors cannot be traced: torch.export's own classes of errors.
_BY_VALUES = re.compile(r"DataDependent|DynamicOutputShape|UnbackedSymbol")


class TorchWorker:
    """Holds an engine, and at most one session in which calls are made one at a time."""

    def __init__(
        self,
        context: Context,
        runtime: GraphCompiler | None = None,
    ) -> None:
        torch.set_num_threads(1)
        run_setup(context)
        self.kind = f"a worker for PyTorch programs ({context.settings.mode})"
        self._context = context
        self._runtime = runtime
        self._engine = CallEngine(runtime, context.blobs, context.enter)
        self._sessions = Sessions(context, self._begun)
        self._learner = ProgramLearner(context, runtime)

    @property
    def handlers(self) -> Handlers:
        return {
            ask.Read: self.read,
            ask.Save: self.save,
            ask.RunModel: self.run,
            ask.Forget: self.forget,
            **self._sessions.handlers,
            **self._learner.handlers,
            ask.TellDefaults: self.tell_defaults,
            ask.TellRegions: self.tell_regions,
            DrawCases: self.draw_cases,
            RunGraphs: self.run_graphs,
            ExposeGraphs: self.expose_graphs,
            CutGraphs: self.cut_graphs,
            DrawCalls: self.draw_calls,
            TryCalls: self.try_calls,
            BuildProgram: self.build_program,
        }

    def is_gap(self, error: Exception) -> bool:
        if _NO_KERNEL.search(str(error)):
            return True
        if self._runtime is None:
            return False
        return bool(_BY_VALUES.search(type(error).__name__)) or self._runtime.is_gap(error)

    def describe(self) -> ask.Hello:
        libraries = ("torch", *(self._runtime.libraries if self._runtime is not None else ()))
        versions = {name: installed_version(name) for name in dict.fromkeys(libraries)}
        return hello(versions, self._runtime.precision if self._runtime is not None else {})

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
        return run_model(self._context, self._engine, request, tensors_of)

    def forget(self, request: ask.Forget) -> ask.Done:
        self._engine.forget()
        self._learner.forget()
        return ask.Done()

    def _begun(self, request: ask.OpenSession) -> Session:
        return Session(request.model, request.inputs, self._engine.alone)

    def tell_defaults(self, request: ask.TellDefaults) -> ask.DefaultsTold:
        """What arguments are when a call does not give them."""
        return ask.DefaultsTold(
            defaults={layer.name: defaults_of(layer.kind) for layer in request.model.layers}
        )

    def tell_regions(self, request: ask.TellRegions) -> ask.RegionsTold:
        """Which calls the target makes one of."""
        examples = [
            torch.ones(shape, dtype=getattr(torch, item.dtype))
            for item, shape in zip(request.model.inputs, request.shapes, strict=True)
        ]
        return ask.RegionsTold(regions=tuple(self._engine.regions(request.model, examples)))

    def draw_cases(self, request: DrawCases) -> GraphsDrawn:
        """New programs, each by its number."""
        from outvote.dialects.torch_export.workers.draw.cases import draw_cases

        return draw_cases(request)

    def draw_calls(self, request: DrawCalls) -> CallsDrawn:
        """New calls behind a tensor."""
        from outvote.dialects.torch_export.workers.draw.calls import draw_calls

        return draw_calls(request, self._engine, self._context.blobs)

    def try_calls(self, request: TryCalls) -> CallsTried:
        """What calls give, if they run and keep instances apart."""
        try:
            model, specs = tried(self._engine, request.model)
        except Unfit as unfit:
            raise Refused(str(unfit)) from unfit
        return CallsTried(model=model, specs=specs)

    def build_program(self, request: BuildProgram) -> ProgramBuilt:
        """A program of the zoo."""
        from outvote.dialects.torch_export.workers.zoo.build import build_program

        return build_program(self._context, request)

    def run_graphs(self, request: RunGraphs) -> GraphsRan:
        """Many small programs, each once."""
        engine = CallEngine(self._runtime, self._context.blobs, lambda layer: None)
        answered = partial(answered_by, partial(run_program, engine), self.is_gap)
        return GraphsRan(answers=run_graphs(request, self._context, answered))

    def expose_graphs(self, request: ExposeGraphs) -> GraphsExposed:
        """The programs with every tensor as an output."""
        return expose_programs(request)

    def cut_graphs(self, request: CutGraphs) -> GraphsCut:
        """Every call of the programs as a program of its own."""
        return cut_programs(request)
