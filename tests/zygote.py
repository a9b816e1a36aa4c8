"""Workers by fork: processes that have imported their libraries once, and divide when asked.

Most of the life of a worker in a test is the import of its library, and the tests start hundreds.
Here those that would import the same come from one process that has it already. All else is as in
production: a process of its own, a child of ours, in a session of its own, with its own
environment, its own death. Linux alone has what this needs (a child for one's parent); elsewhere,
in other environments, and where a library has threads as soon as it is imported, workers start as
they always do. `tests/test_workers_fake.py` starts some in both ways, and whoever runs `outvote` in
a process of its own starts real ones as users do.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outvote.core.target import Target

SOURCE = Path(__file__).parent.parent / "src"
_SYS_CLONE = {"x86_64": 56, "aarch64": 220}.get(os.uname().machine)
_CLONE_PARENT, _SIGCHLD = 0x8000, 17
_SIZE = 1 << 20  # of a request at most
_READY, _UNABLE = b"ready", b"unable"
Start = Callable[[socket.socket, socket.socket], int]
"""Starts the process that divides, with the second's other end; returns its number."""


@contextmanager
def quick_workers(start: Start | None = None) -> Iterator[None]:
    """Fakes are divided off a process that stands ready; where that is possible.

    So are workers with real libraries, unless the process is to be a copy of this one (`divided`).
    """
    if sys.platform != "linux" or _SYS_CLONE is None:
        yield
        return
    process: Any = importlib.import_module("outvote.run.process")
    made, begin = Zygotes(start), process.Process.__init__
    process.subprocess, process.Process.__init__ = made, made.told_whom(begin)
    try:
        yield
    finally:
        process.subprocess, process.Process.__init__ = subprocess, begin
        made.close()


class Zygotes:
    """Stands for the module `subprocess` where workers are started."""

    def __init__(self, start: Start | None) -> None:
        self._current = threading.local()
        self._fakes = Zygote(start or started())
        self._others: dict[str, Zygote] | None = {} if start is None else None
        # Its children die with the thread that has started them: one that stays.
        self._starter = ThreadPoolExecutor(max_workers=1)

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def told_whom(self, start: Callable[..., None]) -> Callable[..., None]:
        """`Process.__init__`, which tells us for which target it starts a process."""

        def told(process: Any, target: Target, *rest: Any) -> None:
            self._current.target = target
            start(process, target, *rest)

        return told

    def Popen(self, command: list[str], **options: Any) -> subprocess.Popen[bytes]:  # noqa: N802
        """A worker, divided off where that can be, started where it cannot."""
        target: Target = self._current.target
        zygote = self._starter.submit(self._zygote, target, options["env"]).result()
        if zygote is None or not zygote.divides:
            return subprocess.Popen(command, **options)
        (fd,) = options["pass_fds"]
        reads, writes = os.pipe()
        pid = zygote.ask(dict(options["env"]), fd, writes)
        os.close(writes)
        return _popen_of(pid, command, reads)

    def _zygote(self, target: Target, environment: Mapping[str, str]) -> Zygote | None:
        """That which has imported what the target needs."""
        if target.python or target.path:
            return None
        if not target.packages:
            return self._fakes
        if self._others is None:
            return None
        what = json.dumps([target.dialect, target.worker, *_chosen_at_import(target)])
        key = what + json.dumps(sorted(target.env.items()))
        if key not in self._others:
            self._others[key] = Zygote(started(what, environment))
        return self._others[key]

    def close(self) -> None:
        for zygote in (self._fakes, *(self._others or {}).values()):
            zygote.close()
        self._starter.shutdown()


def _chosen_at_import(target: Target) -> tuple[str, ...]:
    """Keras is imported on one backend and for one mode; others choose theirs later."""
    if target.dialect != "keras":
        return ()
    return target.backend, "eager" if target.twin else target.mode


class Zygote:
    """A process that divides."""

    def __init__(self, start: Start) -> None:
        self._lock = threading.Lock()
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pid = start(theirs, self._ours)
        theirs.close()
        answer = self._ours.recv(32)
        assert answer, "the process that others are divided off has died: see above"
        self.divides = answer == _READY

    def ask(self, environment: dict[str, str], fd: int, writes: int) -> int:
        """The number of a new child of ours."""
        request = json.dumps([os.getpid(), environment]).encode()
        with self._lock:
            socket.send_fds(self._ours, [request], [fd, writes])
            return int(self._ours.recv(32))

    def close(self) -> None:
        self._ours.close()
        os.waitpid(self._pid, 0)


def started(what: str = "", environment: Mapping[str, str] = os.environ) -> Start:
    """Starts a fresh process, which imports what a target needs."""

    def start(theirs: socket.socket, ours: socket.socket) -> int:
        theirs.set_inheritable(True)
        given = {**environment, "PYTHONPATH": str(SOURCE), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, __file__, str(theirs.fileno()), what]
        return os.posix_spawn(sys.executable, command, given)

    return start


def divided(theirs: socket.socket, ours: socket.socket) -> int:
    """A copy of this process, which must have no threads yet."""
    _prepared()
    pid = os.fork()
    if pid == 0:
        ours.close()
        try:
            main(theirs)
        finally:
            os._exit(0)
    return pid


def _popen_of(pid: int, command: list[str], reads: int) -> subprocess.Popen[bytes]:
    """The object that `subprocess` would have made of this child of ours."""
    made = subprocess.Popen.__new__(subprocess.Popen)
    made.args, made.pid, made.returncode = command, pid, None
    made.stdin = made.stderr = None
    made.stdout = os.fdopen(reads, "rb")
    made._waitpid_lock = threading.Lock()  # type: ignore[attr-defined]
    made._child_created = True  # type: ignore[attr-defined]
    made._communication_started = False  # type: ignore[attr-defined]
    made._input, made._sigint_wait_secs = None, 0.25  # type: ignore[attr-defined]
    made._closed_child_pipe_fds = True  # type: ignore[attr-defined]
    return made


def is_possible() -> bool:
    return sys.platform == "linux" and _SYS_CLONE is not None


def _divide() -> int:
    """fork(2), but the child is our parent's."""
    api = ctypes.pythonapi
    api.PyOS_BeforeFork()
    pid = int(ctypes.CDLL(None).syscall(_SYS_CLONE, _CLONE_PARENT | _SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        api.PyOS_AfterFork_Child()
    else:
        api.PyOS_AfterFork_Parent()
    return pid


def _live(parent: int, environment: dict[str, str], fd: int, writes: int) -> None:
    """What the worker does from here on: as the bootstrap in run/process.py has it."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for source, number in ((null, 0), (writes, 1), (writes, 2)):
        os.dup2(source, number)
    os.close(writes)
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:  # most are as they were: to set them costs
            os.environ[name] = value
    from outvote import dialects
    from outvote.worker.main import serve

    dialects.__path__ += filter(None, environment.get("OUTVOTE_DIALECTS", "").split(os.pathsep))
    serve(fd, parent)


def _prepared() -> None:
    """Has what every fake would import, read and work out before its first answer."""
    for name in (
        "numpy.random",
        "outvote.worker.main",
        "outvote.dialects.keras.workers.fake.worker",
    ):
        importlib.import_module(name)
    from outvote.core import codec
    from outvote.core.protocol import OPERATIONS, Failure, Hello, Start

    for kind in (Start, Hello, Failure, *OPERATIONS.values()):
        codec.coder(kind)
        codec.coder(getattr(kind, "reply", kind))
    gc.freeze()  # so that no child copies it all, looking for garbage


def _import_for(dialect: str, worker: str, *chosen: str) -> None:
    """What a worker of that kind imports, and no more."""
    importlib.import_module(f"outvote.dialects.{dialect}.workers.{worker}")
    if chosen:
        from outvote.dialects.keras.workers.keras3.worker import import_keras

        import_keras(*chosen)
    gc.collect()
    gc.freeze()


def _is_ready(what: str) -> bool:
    """Whether what a target needs is here, and without threads, which a copy would lack."""
    try:
        if what:
            _import_for(*json.loads(what))
    except ImportError:
        return False  # whoever starts as always says what is missing
    return len(list(Path("/proc/self/task").iterdir())) == 1


def main(control: socket.socket, what: str = "") -> None:
    _prepared()
    if not _is_ready(what):
        control.send(_UNABLE)
        return
    control.send(_READY)
    while True:
        request, fds, _, _ = socket.recv_fds(control, _SIZE, 2)
        if not request:
            return
        pid = _divide()
        if pid == 0:
            control.close()
            code = 1
            try:
                _live(*json.loads(request), *fds)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        for fd in fds:
            os.close(fd)
        control.send(str(pid).encode())


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
