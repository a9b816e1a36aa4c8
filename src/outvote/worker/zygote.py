"""A worker before it is told who it is: it imports a library once, and divides when it is asked to.

Its children are its parent's (as `clone(2)` has it), so that the driver waits for them, and its end
is theirs. Where it cannot divide it becomes the one worker itself.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import socket
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from outvote.core import codec
from outvote.core.protocol import OPERATIONS, Failure, Hello, Start
from outvote.worker.main import serve

_SYS_CLONE = {"x86_64": 56, "aarch64": 220}.get(os.uname().machine)
_CLONE_PARENT, _SIGCHLD = 0x8000, 17
_SIZE = 1 << 20  # of a request at most
_ITSELF = b"0"


def stand_ready(fd: int, parent: int, module: str, backend: str, mode: str) -> None:
    """Divide off a worker for every request, until the driver hangs up."""
    control, born_with = socket.socket(fileno=fd), dict(os.environ)
    is_imported = _has_imported(module, backend, mode)
    while True:
        request, fds, _, _ = socket.recv_fds(control, _SIZE, 2)
        if not request:
            return
        end, writes = fds
        pid = _divide() if is_imported and _is_alone() else None
        if pid == 0:
            control.close()
            _live(end, parent, writes, born_with, json.loads(request))
        os.close(writes)
        if pid is None:
            control.send(_ITSELF)
            control.close()
            if not is_imported:
                _begin_again(end)
            serve(end, parent)
            return
        os.close(end)
        control.send(str(pid).encode())


def _has_imported(module: str, backend: str, mode: str) -> bool:
    """Whether all that a worker needs is here; who starts afresh says what is missing."""
    try:
        found = importlib.import_module(module)
        if hasattr(found, "stand_by"):
            found.stand_by(backend, mode)
    except Exception:
        return False
    importlib.import_module("numpy.random")
    for kind in (Start, Hello, Failure, *OPERATIONS.values()):
        codec.coder(kind)
        codec.coder(getattr(kind, "reply", kind))
    gc.collect()
    gc.freeze()  # so that no child copies it all, looking for garbage
    return True


def _is_alone() -> bool:
    """Threads would be missing in a copy."""
    return len(list(Path("/proc/self/task").iterdir())) == 1


def _divide() -> int | None:
    """fork(2), but the child is our parent's; None where the system does not do that."""
    if _SYS_CLONE is None:
        return None
    api = ctypes.pythonapi
    api.PyOS_BeforeFork()
    pid = int(ctypes.CDLL(None).syscall(_SYS_CLONE, _CLONE_PARENT | _SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        api.PyOS_AfterFork_Child()
    else:
        api.PyOS_AfterFork_Parent()
    return pid if pid >= 0 else None


def _live(
    end: int, parent: int, writes: int, born_with: Mapping[str, str], given: Mapping[str, str]
) -> NoReturn:
    """The life of the child, with its own environment and output."""
    code = 1
    try:
        os.setsid()
        for number in (1, 2):
            os.dup2(writes, number)
        os.close(writes)
        for name in born_with.keys() - given.keys():
            os.environ.pop(name, None)
        os.environ.update((n, value) for n, value in given.items() if born_with.get(n) != value)
        serve(end, parent)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _begin_again(end: int) -> NoReturn:
    """The same process from its beginning, as a worker that was never to divide."""
    os.set_inheritable(end, True)
    *before, _, parent, path, _, title = sys.orig_argv
    os.execv(before[0], [*before, str(end), parent, path, "", title])
