"""One worker process: start it, ask it, and outlive whatever it does."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outvote.core.arrays import Array
from outvote.core.blackbox import BlackBox, Position
from outvote.core.errors import ProtocolError
from outvote.core.target import Outcome, Run, Target
from outvote.core.wire import Channel, Closed, Silence

# Loads the package from its own folder, without exposing the site-packages it may lie in:
# the worker may run in another environment with other versions of everything.
_BOOTSTRAP = """
import importlib.util, json, sys
init, fd, settings = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
sys.path[:0] = settings["path"]
spec = importlib.util.spec_from_file_location(
    "outvote", init, submodule_search_locations=[init.rpartition("/")[0]])
module = sys.modules["outvote"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from outvote.worker.main import serve
serve(fd, settings)
"""
_ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "TF_NUM_INTRAOP_THREADS",
        "TF_NUM_INTEROP_THREADS",
        "NUMEXPR_NUM_THREADS",
    ),
    "1",
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")  # colours, which some frameworks put into errors
_LOG_BYTES = 64 << 10


@dataclass(frozen=True)
class Limits:
    """What a worker may take before it is stopped."""

    start_seconds: float = 180.0
    silence_seconds: float = 300.0  # without a step forward
    memory_bytes: int | None = None


class _OutOfMemory(Exception):  # noqa: N818 - becomes an Outcome, never leaves this file
    pass


class Process:
    """A started worker. After any failure it is dead and has to be replaced."""

    def __init__(
        self, target: Target, folder: Path, settings: dict[str, Any], limits: Limits
    ) -> None:
        self.target = target
        self._limits = limits
        folder.mkdir(parents=True, exist_ok=True)
        box_path = folder / f"{os.getpid()}-{time.monotonic_ns()}.box"
        self._box = BlackBox(box_path)
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        full = {
            "worker": f"{target.dialect}.workers.{target.worker}",
            "backend": target.backend,
            "mode": target.mode,
            "setup": str(target.setup.absolute()) if target.setup else None,
            "path": [str(folder.absolute()) for folder in target.path],
            "blackbox": str(box_path),
            "parent": os.getpid(),
            **settings,
        }
        init = Path(__file__).parent.parent / "__init__.py"
        self._popen = subprocess.Popen(
            [
                str(target.python or sys.executable),
                *("-c", _BOOTSTRAP, str(init), str(theirs.fileno()), json.dumps(full)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**_environment(), **_ONE_THREAD, **target.env},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._log = _Tail(self._popen.stdout)
        self.peak_bytes = 0

    @property
    def position(self) -> Position:
        return self._box.read()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def greet(self) -> Run:
        """Wait for the worker's first message: its versions and settings."""
        return self._await(self._limits.start_seconds, steps=0)

    def ask(self, message: dict[str, Any], arrays: Sequence[Array] = (), steps: int = 0) -> Run:
        """Send a request and wait for its answer; `steps` forward moves extend the patience."""
        before = self.position  # steps of a session go on being counted over its requests
        self._box.note(*((0, steps) if steps else (before.done, before.total)))
        try:
            self._channel.send(message, arrays)
        except Closed:
            return self._post_mortem(time.monotonic())
        return self._await(self._limits.silence_seconds, steps)

    def kill(self) -> None:
        """End the worker and everything it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        self._log.join()
        self._channel.close()

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def _await(self, patience: float, steps: int) -> Run:
        began = time.monotonic()
        watch = _Watch(self, patience, steps)
        while True:
            try:
                reply, arrays = self._channel.receive(watch.deadline, watch.tick)
            except Closed:
                return self._post_mortem(began)
            except Silence:
                if watch.moved() or time.monotonic() < watch.deadline:
                    continue
                return self._failed(
                    Outcome.HANG, f"no progress for {patience:.0f} s; stopped", began
                )
            except _OutOfMemory as error:
                return self._failed(Outcome.MEMORY, str(error), began)
            except ProtocolError as error:
                return self._failed(Outcome.GARBAGE, str(error), began)
            return self._finished(reply, arrays, began)

    def _finished(self, reply: dict[str, Any], arrays: list[Array], began: float) -> Run:
        seconds = time.monotonic() - began
        kind = reply.get("type")
        if kind == "result":
            return Run(self.target.name, Outcome.OK, reply, tuple(arrays), seconds=seconds)
        if kind not in ("error", "refused"):
            return self._failed(Outcome.GARBAGE, f"a reply of unknown type {kind!r}", began)
        refused = kind == "refused"
        text = _ANSI.sub("", str(reply.get("message", "")))
        return Run(
            self.target.name,
            Outcome.UNSUPPORTED if reply.get("unsupported") else Outcome.ERROR,
            reply,
            message=text if refused else f"{reply.get('error')}: {text}",
            layer=reply.get("layer"),
            detail=str(reply.get("traceback", "")),
            seconds=seconds,
        )

    def _failed(self, outcome: Outcome, message: str, began: float) -> Run:
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

    def _post_mortem(self, began: float) -> Run:
        try:
            code = self._popen.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return self._failed(Outcome.GARBAGE, "the worker closed its connection", began)
        if code < 0:
            name = signal.Signals(-code).name
            if -code == signal.SIGKILL:
                return self._failed(
                    Outcome.MEMORY,
                    "killed by SIGKILL, as the system does when memory runs out",
                    began,
                )
            return self._failed(Outcome.CRASH, f"the process died of {name}", began)
        return self._failed(Outcome.CRASH, f"the process exited with code {code}", began)

    def check_peak(self) -> int:
        """Note the memory in use now."""
        used = resident_bytes(self._popen.pid)
        self.peak_bytes = max(self.peak_bytes, used)
        return used

    def check_memory(self) -> None:
        """Note the memory in use; raise when it is over the limit."""
        used = self.check_peak()
        limit = self._limits.memory_bytes
        if limit is not None and used > limit:
            raise _OutOfMemory(
                f"used {used >> 20} MiB of memory, more than the limit of {limit >> 20} MiB"
            )


class _Watch:
    """Patience with a worker: renewed by each step forward, at most as often as announced."""

    def __init__(self, process: Process, patience: float, steps: int) -> None:
        self._process = process
        self._patience = patience
        self._renewals = steps
        self._seen = 0
        self.deadline = time.monotonic() + patience

    def tick(self) -> None:
        self._process.check_memory()
        self.moved()

    def moved(self) -> bool:
        done = self._process.position.done
        if done <= self._seen or self._renewals <= 0:
            return False
        self._renewals -= 1
        self._seen = done
        self.deadline = time.monotonic() + self._patience
        return True


class _Tail:
    """Drains a worker's output so that it never blocks, and keeps the end of it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._kept = b""
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        with self._stream as stream:
            while chunk := stream.read1(65536):
                self._kept = (self._kept + chunk)[-_LOG_BYTES:]

    def join(self) -> None:
        self._thread.join(timeout=2)

    def text(self) -> str:
        return self._kept.decode(errors="replace")


def resident_bytes(pid: int) -> int:
    """Memory of a process now; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def _environment() -> dict[str, str]:
    """Our environment without what would pull our own packages into another interpreter."""
    dropped = ("PYTHONPATH", "PYTHONHOME", "KERAS_BACKEND", "PYTHONWARNINGS")
    return {key: value for key, value in os.environ.items() if key not in dropped}
