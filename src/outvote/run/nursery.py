"""Where workers come from: processes that have imported their library once, and divide.

Most of the time that a fresh worker takes goes into the import of its library, and campaigns need
many: for those that died, and to show a finding again where nothing came before. So the first
process of a target imports what it needs and stands ready; each worker is divided off it (fork),
in a few hundredths of a second, as a child of ours in a session of its own. Where that cannot be
(no Linux, another interpreter, a library with threads as soon as it is imported, a failure on the
way) the process becomes the worker itself, and the next one starts anew. What it does then stands
in `outvote/worker/zygote.py`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from outvote.core.target import Target
from outvote.run.tail import Tail

# Loads the package from its own folder, without exposing the site-packages it may lie in: the
# worker may run in another environment with other versions of everything. Before anything is
# imported, the current folder goes from the path: what lies beside a model is not to be run.
_BOOTSTRAP = """
import sys
sys.path[:] = [place for place in sys.path if place not in ("", ".")]
import ctypes, importlib.util, json, os
init, fd, parent, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])
if sys.platform == "linux":  # to die with the driver, before anything slow is imported
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
if os.getppid() != parent:  # it died before that
    sys.exit(1)
sys.path[:0] = path
spec = importlib.util.spec_from_file_location(
    "outvote", init, submodule_search_locations=[init.rpartition("/")[0]])
module = sys.modules["outvote"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
if sys.argv[5]:
    from outvote.worker.zygote import stand_ready
    stand_ready(fd, parent, *json.loads(sys.argv[5]))
else:
    from outvote.worker.main import serve
    serve(fd, parent)
"""
_INIT = Path(__file__).parent.parent / "__init__.py"
_MOST = 8  # that stand ready at a time: each holds its library
_LONGEST = 64  # bytes of an answer
_CAN_DIVIDE = sys.platform == "linux"


class Child(Protocol):
    """A process of ours, as far as `subprocess` and we have the same idea of it."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> Any: ...
    def poll(self) -> int | None: ...
    def wait(self) -> int: ...


@dataclass(frozen=True)
class Born:
    """A worker's process, and what it prints."""

    child: Child
    log: Tail


class Divided:
    """A child of ours that another child has divided off itself."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._lock = threading.Lock()

    def wait(self) -> int:
        return self._waited(0)

    def poll(self) -> int | None:
        self._waited(os.WNOHANG)
        return self.returncode

    def _waited(self, options: int) -> int:
        with self._lock:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, options)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
            return self.returncode or 0


class Nursery:
    """The processes that workers of one pool are divided off."""

    def __init__(self) -> None:
        self._zygotes: dict[str, _Zygote] = {}
        self._ended = False
        self._lock = threading.Lock()
        # Children are told to die with the thread that started them: one that lives as long as we.
        self._starter = ThreadPoolExecutor(max_workers=1)

    def bear(
        self, target: Target, end: socket.socket, environment: Mapping[str, str], seconds: float
    ) -> Born:
        """A worker that speaks through that end of a socket.

        `seconds` is how long an import may take. Whatever is wrong with it then or later, whoever
        asks the worker its first question will learn.
        """
        if not _can_divide(target):
            return self._starter.submit(_launched, target, environment, end).result()
        key = _key_of(target)
        while True:
            zygote = self._zygote(key, target, environment)
            born = zygote.divide(environment, end, seconds)
            if born is None or born.child is zygote.popen:
                with self._lock:  # the next one starts anew
                    if self._zygotes.get(key) is zygote:
                        del self._zygotes[key]
            if born is not None:
                return born

    def end(self) -> None:
        """Kill what stands ready; whoever waits for one of them no longer does."""
        with self._lock:
            self._ended = True
            for zygote in self._zygotes.values():
                zygote.end()

    def close(self) -> None:
        self.end()
        for zygote in self._zygotes.values():
            zygote.close()
        self._zygotes.clear()
        self._starter.shutdown()

    def _zygote(self, key: str, target: Target, environment: Mapping[str, str]) -> _Zygote:
        with self._lock:
            if self._ended:
                raise RuntimeError("the pool is closed")
            if key not in self._zygotes:
                self._make_room()
                started = self._starter.submit(_Zygote, target, environment)
                self._zygotes[key] = started.result()
            self._zygotes[key] = self._zygotes.pop(key)  # the last in the row, as used last
            return self._zygotes[key]

    def _make_room(self) -> None:
        """End what was not used for longest; what it has divided off lives on."""
        idle = [key for key, zygote in self._zygotes.items() if not zygote.is_asked]
        for key in idle[: max(0, len(self._zygotes) - _MOST + 1)]:
            zygote = self._zygotes.pop(key)
            zygote.end()
            zygote.close()


def _can_divide(target: Target) -> bool:
    """Interpreters of other environments may be older than this code."""
    return _CAN_DIVIDE and target.python in (None, Path(sys.executable))


def _key_of(target: Target) -> str:
    """Whose workers are alike until they are told who they are."""
    shared: list[Any] = [target.dialect, target.worker, os.environ.get("OUTVOTE_DIALECTS")]
    if target.packages:  # a library may read its settings while it is imported
        shared += [target.backend, target.mode, sorted(target.env.items())]
        shared += map(str, target.path)
    return json.dumps(shared)


class _Zygote:
    """A process that has imported a library, and divides when it is asked to."""

    def __init__(self, target: Target, environment: Mapping[str, str]) -> None:
        self._has_divided = self._is_worker = False
        self._lock = threading.Lock()
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        module = f"outvote.dialects.{target.dialect}.workers.{target.worker}"
        library = (module, target.backend, target.mode)
        try:
            born = _launched(target, environment, theirs, json.dumps(library))
        except OSError:
            self._ours.close()
            raise
        finally:
            theirs.close()
        self.popen, self._log = born.child, born.log

    def divide(
        self, environment: Mapping[str, str], end: socket.socket, seconds: float
    ) -> Born | None:
        """A child of ours; the process itself, where it becomes the worker or dies of its import.

        None where it died since, or is the worker of who asked before: another may do better.
        """
        with self._lock:
            if self._is_worker:
                return None
            reads, writes = os.pipe()
            pid = None
            with suppress(OSError):  # nobody there, or no answer in time
                try:
                    self._ours.settimeout(seconds)
                    request = json.dumps(dict(environment)).encode()
                    socket.send_fds(self._ours, [request], [end.fileno(), writes])
                    answer = self._ours.recv(_LONGEST)
                    pid = int(answer) if answer else None
                finally:
                    os.close(writes)
            if pid:
                self._has_divided = True
                return Born(Divided(pid), Tail(os.fdopen(reads, "rb")))
            os.close(reads)
            self._ours.close()
            if pid is None and self._has_divided:
                self.end()
                self.close()
                return None
            self._is_worker = True
            return Born(self.popen, self._log)

    @property
    def is_asked(self) -> bool:
        """Whether somebody waits for its answer, or may have just been given it."""
        return self._lock.locked() or not self._has_divided

    def end(self) -> None:
        end_group(self.popen)

    def close(self) -> None:
        self.popen.wait()
        self._log.join()
        self._ours.close()


def _launched(
    target: Target, environment: Mapping[str, str], end: socket.socket, library: str = ""
) -> Born:
    """A process of its own, that serves at once, or stands ready with its library."""
    path = json.dumps([str(folder.absolute()) for folder in target.path])
    arguments = (_INIT, end.fileno(), os.getpid(), path, library)
    popen = subprocess.Popen(
        [
            str(target.python or sys.executable),
            *("-c", _BOOTSTRAP, *map(str, arguments)),
            f"outvote worker: {target.name}",  # for whoever lists processes
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        pass_fds=[end.fileno()],
        start_new_session=True,
    )
    assert popen.stdout is not None
    return Born(popen, Tail(popen.stdout))


def end_group(child: Child) -> None:
    """Kill a child of ours that has not been waited for, and everything it started."""
    with suppress(ProcessLookupError):
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:  # it is so young that it has no group of its own yet
            os.kill(child.pid, signal.SIGKILL)
