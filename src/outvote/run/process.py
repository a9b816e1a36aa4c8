"""One worker process: start it, ask it, and outlive whatever it does."""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import Any

import psutil
from platformdirs import user_cache_path

from outvote.core import codec
from outvote.core.arrays import Array
from outvote.core.blackbox import BlackBox, Position
from outvote.core.errors import ProtocolError
from outvote.core.protocol import PROTOCOL, Failure, Hello, R, Request, Start
from outvote.core.target import Outcome, Run, Target
from outvote.core.wire import Channel, Closed, Silence
from outvote.run.nursery import Child, Nursery, end_group
from outvote.run.queued import Queue, Shares, shares_of

_SETTINGS = {
    "PYTHONSAFEPATH": "1",  # for what a worker starts in its turn
    **dict.fromkeys(
        (
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "MKL_NUM_THREADS",
            "TF_NUM_INTRAOP_THREADS",
            "TF_NUM_INTEROP_THREADS",
            "NUMEXPR_NUM_THREADS",
        ),
        "1",
    ),
}
_ANSI = re.compile(r"\x1b\[[0-9;]*m")  # colours, which some frameworks put into errors
_LAST_WORDS = 5.0  # seconds for a worker that hung up to end
_FAMILY = 1.0  # seconds between two looks at the processes that a worker has started
_LOOKS = 20  # so often within its limit it is asked whether a worker waits for a processor
_CEILING = 10.0  # times its limit: longer is waited for nobody, however busy the machine is


@dataclass(frozen=True)
class Limits:
    """What a worker may take before it is stopped."""

    start_seconds: float = 180.0
    silence_seconds: float = 300.0  # without a step forward
    memory_bytes: int | None = None


Patience = Callable[[], float]
"""Seconds without a step forward that are waited for; they may become fewer meanwhile."""


@dataclass(frozen=True)
class _Family:
    """What a worker had started when that was looked at, and the memory that it held."""

    looked: float
    pids: tuple[int, ...] = ()
    bytes: int = 0


class _OutOfMemory(Exception):  # noqa: N818 - becomes an Outcome, never leaves this file
    pass


class Process:
    """A started worker. After any failure it is dead and has to be replaced."""

    def __init__(
        self, target: Target, folder: Path, settings: Start, limits: Limits, nursery: Nursery
    ) -> None:
        self.target = target
        self._began = time.monotonic()
        self._settings = settings
        self._limits = limits
        self._folder = folder
        folder.mkdir(parents=True)
        self._box = BlackBox(folder / "box")
        ours, theirs = socket.socketpair()
        environment = {**_environment(target), **_SETTINGS, **target.env}
        try:
            born = nursery.bear(target, theirs, environment, limits.start_seconds)
        except OSError:
            ours.close()
            shutil.rmtree(folder)
            raise
        finally:
            theirs.close()
        self._child, self._log = born.child, born.log
        self._channel = Channel(ours)
        self._reaped = False
        self._own = psutil.Process(self._child.pid)
        self._family = _Family(time.monotonic())
        self.peak_bytes = 0

    @property
    def position(self) -> Position:
        return self._box.read()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def alive(self) -> bool:
        return not self._reaped and not _has_ended(self._child)

    def greet(self) -> Run[Hello]:
        """Tell the worker who it is, and wait for its first words: its versions and settings."""
        left = max(0.0, self._began + self._limits.start_seconds - time.monotonic())
        run = self._asked(Hello, *codec.written(self._settings), lambda: left, steps=0)
        if run.ok and run.reply.protocol != PROTOCOL:
            told = f"it speaks version {run.reply.protocol} of the protocol, not {PROTOCOL}"
            return self._failed(Outcome.ERROR, told, time.monotonic())
        return run

    def ask(self, request: Request[R], patience: Patience | None = None) -> Run[R]:
        """Send a request and wait for its answer."""
        before = self.position  # steps of a session go on being counted over its requests
        steps = request.steps
        self._box.note(*((0, steps) if steps else (before.done, before.total)))
        data, arrays = codec.written(request)
        message = {"op": type(request).__name__, "request": data}
        kind: Any = request.reply
        return self._asked(kind, message, arrays, patience or self._full_patience, steps)

    def end(self) -> None:
        """Stop the worker and everything it started, without waiting for it."""
        if not self._reaped:
            end_group(self._child)

    def kill(self) -> None:
        """End the worker and take away what it held. Its number is free for others then."""
        if self._reaped:
            return
        self.end()  # while the system still keeps its number, so that no other group is hit
        self._child.wait()
        self._reaped = True
        self._log.join()
        self._channel.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _full_patience(self) -> float:
        return self._limits.silence_seconds

    def _asked(
        self,
        kind: type[R],
        message: dict[str, Any],
        arrays: list[Array],
        patience: Patience,
        steps: int,
    ) -> Run[R]:
        began = time.monotonic()
        watch = _Watch(self, patience, steps, self._limits.silence_seconds)
        try:
            self._channel.send(message, arrays, watch.deadline, watch.tick)
            while True:
                try:
                    reply, results = self._channel.receive(watch.deadline, watch.tick)
                    break
                except Silence:
                    if not watch.moved():
                        raise
            return self._finished(kind, reply, results, began)
        except Closed:
            return self._post_mortem(began)
        except Silence:
            return self._failed(Outcome.HANG, f"no progress for {watch.told}; stopped", began)
        except _OutOfMemory as error:
            return self._failed(Outcome.MEMORY, str(error), began)
        except ProtocolError as error:
            return self._failed(Outcome.GARBAGE, str(error), began)

    def _finished(
        self, kind: type[R], message: dict[str, Any], arrays: list[Array], began: float
    ) -> Run[R]:
        seconds = time.monotonic() - began
        name, told = message.get("type"), message.get("reply")
        if name == "result":
            reply = codec.read(kind, told, arrays)
            inside = float(message.get("seconds", 0.0))
            return Run(self.target.name, Outcome.OK, reply, seconds=seconds, inside=inside)
        if name != "failure":
            raise ProtocolError(f"a reply of unknown type {name!r}")
        failure = codec.read(Failure, told, arrays)
        text = _ANSI.sub("", failure.message)
        return Run(
            self.target.name,
            Outcome.UNSUPPORTED if failure.unsupported else Outcome.ERROR,
            message=text if failure.refused else f"{failure.error}: {text}".removeprefix(": "),
            layer=failure.layer,
            detail=failure.traceback,
            error=failure.error,
            refused=failure.refused,
            seconds=seconds,
        )

    def _failed(self, outcome: Outcome, message: str, began: float) -> Run[Any]:
        layer = self.position.layer
        self.kill()
        return Run(
            self.target.name,
            outcome,
            message=message,
            layer=layer,
            detail=self._log.text(),
            seconds=time.monotonic() - began,
        )

    def _post_mortem(self, began: float) -> Run[Any]:
        """What became of a worker that hung up."""
        until = time.monotonic() + _LAST_WORDS
        while not _has_ended(self._child):
            if time.monotonic() > until:
                return self._failed(Outcome.GARBAGE, "the worker closed its connection", began)
            time.sleep(0.005)
        self.kill()
        outcome, text = _cause_of_death(self._child.returncode)
        return self._failed(outcome, text, began)

    def check_peak(self) -> int:
        """Note the memory in use now, by the worker and what it has started."""
        now = time.monotonic()
        if now - self._family.looked > _FAMILY:
            self._family = _family_of(self._own, now)
        used = resident_bytes(self._own) + self._family.bytes
        self.peak_bytes = max(self.peak_bytes, used)
        return used

    def shares(self) -> Shares:
        """What the processor gave to its threads, and to those of what it has started."""
        return shares_of((self.pid, *self._family.pids))

    def check_memory(self) -> None:
        """Note the memory in use; raise when it is over the limit."""
        used = self.check_peak()
        limit = self._limits.memory_bytes
        if limit is not None and used > limit:
            raise _OutOfMemory(
                f"held {used >> 20} MiB, more than the limit of {limit >> 20} MiB; stopped"
            )


def _has_ended(child: Child) -> bool:
    """Whether a process is over; the system keeps its number until it is waited for."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return child.poll() is not None
    if child.returncode is not None:
        return True
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    try:
        return os.waitid(os.P_PID, child.pid, flags) is not None
    except ChildProcessError:  # another thread has waited for it in between
        return True


def _cause_of_death(code: int) -> tuple[Outcome, str]:
    if code >= 0:
        return Outcome.CRASH, f"the process exited with code {code}"
    if -code == signal.SIGKILL:
        return Outcome.MEMORY, "killed by SIGKILL, as the system does when memory runs out"
    known = {int(item): item.name for item in signal.Signals}
    return Outcome.CRASH, f"the process died of {known.get(-code, f'signal {-code}')}"


class _Watch:
    """Patience with a worker: renewed by each step forward, at most as often as announced.

    A worker that gives signs of life between two steps compiles; it is not stuck, and has as long
    as the user allows for a step. Time in which it waits for a processor is not its own, within
    bounds: nothing is waited for without end.
    """

    def __init__(
        self, process: Process, patience: Patience, steps: int, longest: float = math.inf
    ) -> None:
        self._process = process
        self._patience = patience
        self._renewals = steps
        self._longest = longest
        self._seen = 0
        self._signs = process.position.signs
        self._began = self._lived = time.monotonic()
        self._queue = Queue(self._began)
        self.limit = patience()

    def deadline(self) -> float:
        patience, lived = self._patience(), self._lived - self._began
        self.limit = max(patience, min(lived + patience, self._longest))
        return self._began + min(self.limit + self._queue.seconds, _CEILING * self.limit)

    @property
    def told(self) -> str:
        """How long was waited."""
        queued = f"{self._queue.seconds:.0f}"
        besides = f", besides {queued} s in a queue for a processor" if queued != "0" else ""
        return f"{self.limit:.0f} s{besides}"

    def tick(self) -> None:
        self._process.check_memory()
        now, looked = time.monotonic(), self._queue.looked
        if looked is None or now - looked >= self.limit / _LOOKS:
            self._queue.look(now, self._process.shares())
        self.moved()

    def moved(self) -> bool:
        """Whether there is a reason to wait on."""
        before = self._process.position
        return self._stepped(before.done) or self._lives(before.signs)

    def _lives(self, signs: int) -> bool:
        if signs == self._signs:
            return False
        self._signs, self._lived = signs, time.monotonic()
        return time.monotonic() < self.deadline()

    def _stepped(self, done: int) -> bool:
        if done <= self._seen or self._renewals <= 0:
            return False
        self._renewals -= 1
        self._seen = done
        self._began = self._lived = time.monotonic()
        self._queue = Queue(self._began)
        return True


def resident_bytes(process: psutil.Process) -> int:
    """Memory of a process now; 0 where the system does not say."""
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _family_of(process: psutil.Process, now: float) -> _Family:
    """What a process has started, and what that has."""
    try:
        children = process.children(recursive=True)
    except psutil.Error:
        return _Family(now)
    return _Family(now, tuple(c.pid for c in children), sum(map(resident_bytes, children)))


def _environment(target: Target) -> dict[str, str]:
    """Our environment without what would pull our own packages into another interpreter."""
    dropped = ["PYTHONPATH", "PYTHONHOME", "PYTHONWARNINGS"]
    bytecode = {}
    if sys.dont_write_bytecode and not _has_bytecode(target.packages):
        dropped.append("PYTHONDONTWRITEBYTECODE")
        bytecode["PYTHONPYCACHEPREFIX"] = str(user_cache_path("outvote") / "bytecode")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    return {**kept, **bytecode}


@cache
def _has_bytecode(packages: tuple[str, ...]) -> bool:
    """Whether libraries were compiled when they were installed.

    If not, a worker that writes none takes half a minute to start where it took seconds.
    """
    found = [spec.origin for spec in map(find_spec, packages) if spec and spec.origin]
    return all(Path(cache_from_source(origin)).exists() for origin in found)
