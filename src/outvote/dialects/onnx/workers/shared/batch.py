"""Runs many small graphs for one request: each case alone answers for what it does.

Where a runtime has no threads of its own, cases run in a child of the worker. What kills the child,
or takes it too long or too much memory, is the answer to that case; another child goes on with the
next one. Starting a child takes milliseconds, a new worker half a second.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import select
import signal
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from onnx import ModelProto

from outvote.core.arrays import Array
from outvote.core.model import Input
from outvote.core.states import State
from outvote.core.target import Outcome
from outvote.dialects.onnx.nouns.batch import (
    GraphAnswer,
    GraphCase,
    Pack,
    RunGraphs,
    answer_item,
    cases_in,
)
from outvote.dialects.onnx.nouns.types import NAMES
from outvote.dialects.onnx.workers.shared.assemble import Assembled
from outvote.dialects.onnx.workers.shared.runtime import Runtime
from outvote.worker.main import Context

_MEMORY = 2 << 30  # bytes that it may take beyond what the worker has
_MEMORY_ENDS = re.compile(r"MemoryError|Insufficient memory|bad_alloc|bad allocation")
_LENGTH = struct.Struct("<I")
_PR_SET_PDEATHSIG = 1


def run_graphs(runtime: Runtime, request: RunGraphs, context: Context) -> Array:
    """Packed answers to packed cases."""
    cases = cases_in(request.cases)
    context.begin(len(cases))
    pack = Pack()
    if runtime.divides and sys.platform == "linux":
        _Children(runtime, cases, context, pack, request.seconds).run()
    else:
        for place, case in enumerate(cases):
            context.enter(str(place))  # whom to blame for a death
            for part in answer_item(answered(runtime, case)):
                pack.add_packed(bytes(part))
            context.step()
    return pack.array


def answered(runtime: Runtime, case: GraphCase) -> GraphAnswer:
    """What a runtime makes of a graph, errors included."""
    began = time.process_time()
    try:
        graph = _assembled(case, runtime.free)
        pairs = zip(graph.inputs, case.feeds, strict=True)
        states = runtime.load(graph).run([State(array, None, i.dtype) for i, array in pairs])
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        outcome = _outcome(runtime, error, told)
        return GraphAnswer(outcome, message=told, seconds=time.process_time() - began)
    outputs = [state.array for state in states if state is not None]  # none is shown, none gone
    return GraphAnswer(Outcome.OK, outputs, seconds=time.process_time() - began)


def _outcome(runtime: Runtime, error: Exception, told: str) -> Outcome:
    if _MEMORY_ENDS.search(told):
        return Outcome.MEMORY
    gap = isinstance(error, NotImplementedError) or runtime.is_gap(error)
    return Outcome.UNSUPPORTED if gap else Outcome.ERROR


def _assembled(case: GraphCase, free: bool) -> Assembled:
    """The graph to be loaded; without sizes, where these are to be free."""
    proto = ModelProto.FromString(case.proto)
    for value in (*proto.graph.input, *proto.graph.output) if free else ():
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}.{axis}"
    inputs = tuple(
        Input(value.name, tuple(array.shape), NAMES[value.type.tensor_type.elem_type], None)
        for value, array in zip(proto.graph.input, case.feeds, strict=True)
    )
    outputs = tuple(value.name for value in proto.graph.output)
    content = None if free else case.proto
    return Assembled(proto, inputs, outputs, own=len(outputs), content=content)


class _Children:
    """One child after the other, each from the case behind the one that ended the last."""

    def __init__(
        self,
        runtime: Runtime,
        cases: Sequence[GraphCase],
        context: Context,
        pack: Pack,
        seconds: float,
    ) -> None:
        self._seconds = seconds
        self._runtime = runtime
        self._cases = cases
        self._context = context
        self._pack = pack
        self._next = 0

    def run(self) -> None:
        while self._next < len(self._cases):
            ours, theirs = os.pipe()
            child = os.fork()
            if not child:
                os.close(ours)
                self._work(theirs)
            os.close(theirs)
            try:
                ended = self._collect(ours)
            finally:
                os.close(ours)
                if self._next < len(self._cases):
                    os.kill(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
            if self._next < len(self._cases):
                self._blame(ended or _cause_of(status))

    def _work(self, pipe: int) -> None:
        """In the child: one answer after the other, until it is done or dead."""
        code = 1
        try:
            _die_with_the_worker()
            _limit_memory()
            for case in self._cases[self._next :]:
                data = b"".join(answer_item(answered(self._runtime, case)))
                _write(pipe, _LENGTH.pack(len(data)) + data)
            code = 0
        finally:
            os._exit(code)

    def _collect(self, pipe: int) -> GraphAnswer | None:
        """Take answers until the child ends; why it was given up, if it was."""
        while self._next < len(self._cases):
            deadline = time.monotonic() + self._seconds
            head = _read(pipe, _LENGTH.size, deadline)
            data = _read(pipe, _LENGTH.unpack(head)[0], deadline) if head else head
            if data is None:
                return GraphAnswer(Outcome.HANG, message=f"no answer for {self._seconds:.0f} s")
            if not data:
                return None
            self._take(data)
        return None

    def _blame(self, answer: GraphAnswer) -> None:
        self._take(b"".join(answer_item(answer)))

    def _take(self, data: bytes) -> None:
        self._pack.add_packed(data)
        self._next += 1
        self._context.step()


def _read(pipe: int, size: int, deadline: float) -> bytes | None:
    """So many bytes; empty where the other side has ended, None where the time is up."""
    data = bytearray()
    while len(data) < size:
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        chunk = os.read(pipe, min(1 << 20, size - len(data)))
        if not chunk:
            return b""
        data += chunk
    return bytes(data)


def _write(pipe: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(pipe, view) :]


def _cause_of(status: int) -> GraphAnswer:
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return GraphAnswer(Outcome.CRASH, message=f"the process died of {name}")
    return GraphAnswer(Outcome.CRASH, message=f"the process exited with {status >> 8}")


def _die_with_the_worker() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _limit_memory() -> None:
    """A graph that takes all memory would take that of others too."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + _MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
