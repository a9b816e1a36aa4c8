"""The loop of a worker process: read a request, let the adapter answer it, send the reply."""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import outvote.core.explore_protocol
import outvote.core.trace_protocol
import outvote.core.train_protocol  # noqa: F401 - so that who cannot do any of it can say so
from outvote.core import codec
from outvote.core.arrays import Array
from outvote.core.blackbox import BlackBox
from outvote.core.blobs import BlobStore
from outvote.core.errors import ProtocolError
from outvote.core.protocol import OPERATIONS, Failure, File, Hello, Reply, Request, Start
from outvote.core.wire import Channel, Closed, framed

Handlers = Mapping[type[Request[Any]], Callable[[Any], Reply]]
Frame = list[memoryview]


class Refused(Exception):  # noqa: N818 - the request, not the worker, is at fault
    """The worker will not do this (unsafe or unreadable input); the text is for the user."""


class Adapter(Protocol):
    """What a worker kind offers: who it is, what it answers, and which errors are gaps."""

    kind: str  # its name, for whoever asks what it cannot do

    @property
    def handlers(self) -> Handlers:
        """One method for each request that it supports."""
        ...

    def describe(self) -> Hello: ...

    def is_gap(self, error: Exception) -> bool:
        """Whether an error of its library says "not supported", in words of its own."""
        ...


class Context:
    """What every adapter is given: its settings, the blob store, and where to note progress."""

    def __init__(self, settings: Start) -> None:
        self.settings = settings
        self.folder = Path(settings.folder)
        self.blobs = BlobStore(Path(settings.blobs))
        self._box = BlackBox(self.folder / "box")
        self.done = 0
        self.total = 0
        self.layer: str | None = None

    def begin(self, total: int) -> None:
        self.done, self.total, self.layer = 0, total, None
        self._box.note(0, total)

    def enter(self, layer: str) -> None:
        """Say which layer is about to be computed, so that a death there is attributed."""
        self.layer = layer
        self._box.note(self.done, self.total, layer)

    def live(self) -> None:
        """Give a sign of life between two steps: something is done that takes its time."""
        self._box.live()

    def step(self) -> None:
        self.reach(self.done + 1)

    def reach(self, done: int) -> None:
        """Say how many steps are done by now."""
        self.done = done
        self._box.note(done, self.total, self.layer or "")

    def placed(self, file: File, folder: Path) -> Path:
        """A file that came as a blob, under its own name in a folder of ours."""
        path = folder / Path(file.name).name
        self.blobs.copy_file(file.digest, path)
        return path

    def taken(self, path: Path) -> File:
        """A file of ours as a blob."""
        return File(path.name, self.blobs.put_file(path))


def serve(fd: int, parent: int) -> None:
    """Answer requests on a socket until the driver hangs up."""
    _die_with_parent(parent)
    _be_first_to_go_when_memory_ends()
    channel = Channel(socket.socket(fileno=fd))
    try:
        message, arrays = channel.receive()
        context = Context(codec.read(Start, message, arrays))
        try:
            adapter = _adapter(context)
            hello = _result(adapter.describe(), 0.0)
        except Exception as error:
            channel.send_frame(_failed(_failure(error, context)))
            return
        channel.send_frame(hello)
        while True:
            channel.send_frame(_answer(adapter, context, *channel.receive()))
    except Closed:
        return


def _adapter(context: Context) -> Adapter:
    """The worker kind that the settings name."""
    module = importlib.import_module(f"outvote.dialects.{context.settings.worker}")
    adapter: Adapter = module.create(context)
    return adapter


def _answer(
    adapter: Adapter, context: Context, message: dict[str, Any], arrays: list[Array]
) -> Frame:
    context.layer = None
    began = time.perf_counter()
    try:
        kind = _operation(message)
        handler = adapter.handlers.get(kind)
        if handler is None:
            raise NotImplementedError(f"{adapter.kind} cannot {kind.deed}")
        reply = handler(_request(kind, message, arrays))
        if not isinstance(reply, kind.reply):
            raise TypeError(f"{kind.__name__} was answered with a {type(reply).__name__}")
    except Exception as error:
        return _failed(_failure(error, context, adapter))
    try:
        return _result(reply, time.perf_counter() - began)
    except ProtocolError as error:  # tensors of strings, complex or 8-bit numbers
        return _failed(
            Failure(message=f"outvote cannot take over this result: {error}", unsupported=True)
        )


def _operation(message: Mapping[str, Any]) -> type[Request[Any]]:
    found = OPERATIONS.get(str(message.get("op")))
    if found is None:
        raise Refused(f"there is no operation {message.get('op')!r}")
    return found


def _request(kind: type[Request[Any]], message: Mapping[str, Any], arrays: list[Array]) -> Any:
    try:
        return codec.read(kind, message.get("request"), arrays)
    except ProtocolError as error:
        raise Refused(f"this is no request: {error}") from error


def _result(reply: Reply, seconds: float) -> Frame:
    data, arrays = codec.written(reply)
    return framed({"type": "result", "seconds": seconds, "reply": data}, arrays)


def _failed(failure: Failure) -> Frame:
    return framed({"type": "failure", "reply": codec.written(failure)[0]})


def _failure(error: Exception, context: Context, adapter: Adapter | None = None) -> Failure:
    gap = isinstance(error, NotImplementedError)
    return Failure(
        message=str(error),
        error=type(error).__name__,
        refused=isinstance(error, Refused),
        unsupported=gap or (adapter is not None and adapter.is_gap(error)),
        traceback=traceback.format_exc(),
        layer=context.layer,
    )


def _die_with_parent(parent: int) -> None:
    """A worker must not outlive a driver that was killed, even in the middle of a request.

    On Linux the kernel sees to it, also when a library holds the interpreter's lock; elsewhere a
    thread does.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.killpg(0, signal.SIGKILL)  # with what it has started

    threading.Thread(target=watch, daemon=True).start()


_PR_SET_PDEATHSIG = 1


def _be_first_to_go_when_memory_ends() -> None:
    path = Path("/proc/self/oom_score_adj")
    if path.exists():
        path.write_text("1000")
