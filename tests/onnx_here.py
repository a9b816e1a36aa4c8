"""The worker of ONNX' reference in this process: the same code, asked over the same codec.

What needs a process of its own (a death, a hang, a framework) is tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from outvote.core import codec, protocol
from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import Model
from outvote.core.protocol import R, Request, Start
from outvote.core.states import State
from outvote.core.target import Outcome, Run
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.dialects.onnx.workers.reference import create
from outvote.dialects.onnx.workers.shared.worker import OnnxWorker
from outvote.mutate.subject import Subject
from outvote.worker.main import Context, Refused

NAME = "onnx-reference"


class Here:
    """As much of a Pool as asks one worker."""

    def __init__(self, folder: Path) -> None:
        target = BUILT_IN[NAME]
        start = Start(
            worker=f"onnx.workers.{target.worker}",
            backend=target.backend,
            mode=target.mode,
            allow_code=False,
            setup=None,
            custom=None,
            blobs=str(folder / "blobs"),
            folder=str(folder),
        )
        self.context = Context(start)
        self.worker: OnnxWorker = create(self.context)
        self.blobs: BlobStore = self.context.blobs
        self.targets = {NAME: target}

    def add(self, target: Any) -> None:
        self.targets[target.name] = target

    def ask(self, name: str, request: Request[R]) -> Run[R]:
        """The answer, with what the wire and the driver make of it."""
        sent = codec.read(type(request), *codec.written(request))
        try:
            reply = self.worker.handlers[type(request)](sent)
        except Exception as error:
            gap = isinstance(error, NotImplementedError) or self.worker.is_gap(error)
            outcome = Outcome.UNSUPPORTED if gap else Outcome.ERROR
            refused = isinstance(error, Refused)
            told = str(error) if refused else f"{type(error).__name__}: {error}"
            return Run(name, outcome, message=told, layer=self.context.layer, refused=refused)
        answer = codec.read(type(reply), *codec.written(reply))
        return Run(name, Outcome.OK, cast(R, answer))

    def reply(self, request: Request[R]) -> R:
        run = self.ask(NAME, request)
        assert run.ok, run.message
        return run.reply

    def read(self, proto: Any, **dims: int) -> protocol.ModelRead:
        digest = self.blobs.put(np.frombuffer(proto.SerializeToString(), np.uint8))
        return self.reply(protocol.Read(file=protocol.File("model.onnx", digest), dims=dims))

    def subject(self, proto: Any) -> Subject:
        found = self.read(proto)
        return Subject.of(found.model, found.specs)

    def asked(self, model: Model, inputs: Sequence[Array], **more: Any) -> Run[protocol.Ran]:
        digests = tuple(self.blobs.put(array) for array in inputs)
        wanted = {"model": model, "inputs": digests, "batch": 64, **more}
        return self.ask(NAME, protocol.RunModel(**wanted))

    def run(self, model: Model, inputs: Sequence[Array], **more: Any) -> protocol.Ran:
        run = self.asked(model, inputs, **more)
        assert run.ok, run.message
        return run.reply

    def fed(self, model: Model, inputs: Sequence[Array]) -> tuple[State, ...]:
        return tuple(State.fed(x, item) for x, item in zip(inputs, model.inputs, strict=True))
