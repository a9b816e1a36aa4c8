"""The loop of a worker process: read a request, let the adapter answer it, send the reply."""

from __future__ import annotations

import importlib
import os
import re
import socket
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from outvote.core.arrays import Array
from outvote.core.blackbox import BlackBox
from outvote.core.blobs import BlobStore
from outvote.core.wire import PROTOCOL, Channel, Closed

Reply = tuple[dict[str, Any], Sequence[Array]]


class Refused(Exception):  # noqa: N818 - the request, not the worker, is at fault
    """The worker will not do this (unsafe or unreadable input); the text is for the user."""


class Adapter(Protocol):
    """What a worker kind offers: `describe` and one method per operation, named `do_...`."""

    def describe(self) -> dict[str, Any]: ...


class Context:
    """What every adapter is given: its settings, the blob store, and where to note progress."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.blobs = BlobStore(Path(settings["blobs"]))
        self._box = BlackBox(Path(settings["blackbox"]))
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

    def step(self) -> None:
        self.reach(self.done + 1)

    def reach(self, done: int) -> None:
        """Say how many steps are done by now."""
        self.done = done
        self._box.note(done, self.total, self.layer or "")


def serve(fd: int, settings: dict[str, Any]) -> None:
    """Answer requests on a socket until the driver hangs up."""
    _die_with_parent(int(settings["parent"]))
    _be_first_to_go_when_memory_ends()
    channel = Channel(socket.socket(fileno=fd))
    context = Context(settings)
    try:
        module = importlib.import_module(f"outvote.dialects.{settings['worker']}")
        adapter: Adapter = module.create(context)
        hello = {"type": "result", "protocol": PROTOCOL, **adapter.describe()}
    except Exception as error:
        channel.send(_failure(error, context))
        return
    try:
        channel.send(hello)
        while True:
            message, arrays = channel.receive()
            channel.send(*_answer(adapter, context, message, arrays))
    except Closed:
        return


def _answer(
    adapter: Adapter, context: Context, message: dict[str, Any], arrays: list[Array]
) -> Reply:
    context.layer = None
    began = time.perf_counter()
    try:
        operation = getattr(adapter, f"do_{message.pop('op')}")
        reply, results = operation(arrays=arrays, **message)
    except Exception as error:
        return _failure(error, context), ()
    return {"type": "result", "seconds": time.perf_counter() - began, **reply}, results


def _failure(error: Exception, context: Context) -> dict[str, Any]:
    return {
        "type": "refused" if isinstance(error, Refused) else "error",
        "error": type(error).__name__,
        "unsupported": isinstance(error, NotImplementedError) or _is_gap(str(error)),
        "message": str(error),
        "traceback": traceback.format_exc(),
        "layer": context.layer,
    }


def _is_gap(message: str) -> bool:
    """Keras refuses some features by name, with a ValueError: a gap, like "not implemented"."""
    return bool(re.search(r"not supported (by|on|in|with) the \w+ backend", message))


def _die_with_parent(parent: int) -> None:
    """A worker must not outlive a driver that was killed, even in the middle of a request."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _be_first_to_go_when_memory_ends() -> None:
    path = Path("/proc/self/oom_score_adj")
    if path.exists():
        path.write_text("1000")
