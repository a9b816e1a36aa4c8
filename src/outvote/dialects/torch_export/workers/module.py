"""The module itself: what it answered in the user's process, where alone it lives."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from outvote.core import protocol as ask
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.dialects.torch_export.nouns.module import ANSWERS, ModuleAnswers
from outvote.worker.hello import hello, installed_version
from outvote.worker.main import Context, Handlers


def create(context: Context) -> ModuleItself:
    return ModuleItself(context)


class ModuleItself:
    """Repeats what was answered to the inputs that were given, and knows nothing else."""

    kind = "a module in memory"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._answers = ModuleAnswers.read(Path(os.environ[ANSWERS]))

    @property
    def handlers(self) -> Handlers:
        return {ask.RunModel: self.run, ask.Forget: self.forget}

    def is_gap(self, error: Exception) -> bool:
        return False

    def describe(self) -> ask.Hello:
        return hello({"torch": installed_version("torch")}, {})

    def forget(self, request: ask.Forget) -> ask.Done:
        return ask.Done()

    def run(self, request: ask.RunModel) -> ask.Ran:
        model, known = request.model, self._answers
        given = [np.asarray(self._context.blobs.get(digest)) for digest in request.inputs]
        if request.watch or request.jitter is not None or not known.are_to(given):
            raise NotImplementedError("the module was run on the inputs as they were given alone")
        if len(model.outputs) != len(known.outputs):
            raise NotImplementedError(
                f"the module gives {len(known.outputs)} tensors, its program {len(model.outputs)}"
            )
        self._context.begin(1)
        answered = zip(known.outputs, known.types, model.outputs, strict=True)
        states = [State(y, None, dtype, model.batch_axis(r)) for y, dtype, r in answered]
        self._context.step()
        return ask.Ran(outputs=Outputs.of(states), watched={})
