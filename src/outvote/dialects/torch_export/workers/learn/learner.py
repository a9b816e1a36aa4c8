"""What a worker for PyTorch programs answers about training: gradients, updates, steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import torch

from outvote.core import train_protocol as learn
from outvote.dialects.torch_export.workers.learn.modes import Mode, mode_of
from outvote.dialects.torch_export.workers.learn.prepare import prepare
from outvote.dialects.torch_export.workers.learn.pullback import Pullbacks
from outvote.dialects.torch_export.workers.learn.steps import train_steps
from outvote.dialects.torch_export.workers.learn.update import apply_gradients
from outvote.dialects.torch_export.workers.shared.engine import GraphCompiler
from outvote.worker.main import Context, Handlers


@contextmanager
def _exactly(wide: bool) -> Iterator[None]:
    """Where float64 is asked for, all of it: an optimiser counts its steps in the default type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if wide else before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class ProgramLearner:
    """Training in one mode of PyTorch."""

    def __init__(self, context: Context, runtime: GraphCompiler | None) -> None:
        self._context = context
        self._runtime = runtime

    @property
    def handlers(self) -> Handlers:
        return {
            learn.PrepareTraining: prepare,
            learn.PullBack: self.pull_back,
            learn.ApplyGradients: self.apply,
            learn.TrainSteps: self.train,
        }

    def forget(self) -> None:
        """Drop what was kept from earlier requests."""
        self.__dict__.pop("_pullbacks", None)

    @cached_property
    def _mode(self) -> Mode:
        return mode_of(self._runtime)

    @cached_property
    def _pullbacks(self) -> Pullbacks:
        return Pullbacks(self._context.blobs, self._mode)

    def pull_back(self, request: learn.PullBack) -> learn.PulledBack:
        self._context.begin(len(request.moves))
        for layer in request.model.layers[:1]:
            self._context.enter(layer.name)
        with _exactly(request.exact):
            return self._pullbacks.pull(request, self._context.step)

    def apply(self, request: learn.ApplyGradients) -> learn.GradientsApplied:
        types = {self._context.blobs.get(digest).dtype.name for digest in request.weights}
        with _exactly("float64" in types):
            return apply_gradients(self._context, self._mode, request)

    def train(self, request: learn.TrainSteps) -> learn.StepsTrained:
        with _exactly(request.exact):
            return train_steps(self._context, self._mode, request)
