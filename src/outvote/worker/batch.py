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
from collections.abc import Callable, Sequence
from pathlib import Path

from outvote.core.arrays import Array
from outvote.core.batch import GraphAnswer, GraphCase, Pack, RunGraphs, answer_item, cases_in
from outvote.core.states import State
from outvote.core.target import Outcome
from outvote.worker.main import Context

Answering = Callable[[GraphCase], GraphAnswer]

_MEMORY = 2 << 30  # bytes that it may take beyond what the worker has
_MEMORY_ENDS = re.compile(r"MemoryError|Insufficient memory|bad_alloc|bad allocation")
_LENGTH = struct.Struct("<I")
_PR_SET_PDEATHSIG = 1


def run_graphs(
    request: RunGraphs, context: Context, answered: Answering, divides: bool = False
) -> Array:
    """Packed answers to packed cases; `divides`: they may be given by children of the worker."""
    cases = cases_in(request.cases)
    context.begin(len(cases))
    pack = Pack()
    if divides and sys.platform == "linux":
        _Children(answered, cases, context, pack, request.seconds).run()
    else:
        for place, case in enumerate(cases):
            context.enter(str(place))  # whom to blame for a death
            for part in answer_item(answered(case)):
                pack.add_packed(bytes(part))
            context.step()
    return pack.array


def answered_by(
    run: Callable[[GraphCase], Sequence[State]],
    is_gap: Callable[[Exception], bool],
    case: GraphCase,
) -> GraphAnswer:
    """What comes of running a case, errors included."""
    began = time.process_time()
    try:
        outputs = run(case)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        outcome = _outcome(is_gap, error, told)
        return GraphAnswer(outcome, message=told, seconds=time.process_time() - began)
    arrays, types = [one.array for one in outputs], tuple(one.dtype for one in outputs)
    plain = all(array.dtype.name == dtype for array, dtype in zip(arrays, types, strict=True))
    seconds = time.process_time() - began
    return GraphAnswer(Outcome.OK, arrays, seconds=seconds, types=() if plain else types)


def _outcome(is_gap: Callable[[Exception], bool], error: Exception, told: str) -> Outcome:
    if _MEMORY_ENDS.search(told):
        return Outcome.MEMORY
    gap = isinstance(error, NotImplementedError) or is_gap(error)
    return Outcome.UNSUPPORTED if gap else Outcome.ERROR


class _Children:
    """One child after the other, each from the case behind the one that ended the last."""

    def __init__(
        self,
        answered: Answering,
        cases: Sequence[GraphCase],
        context: Context,
        pack: Pack,
        seconds: float,
    ) -> None:
        self._seconds = seconds
        self._answered = answered
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
                data = b"".join(answer_item(self._answered(case)))
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
