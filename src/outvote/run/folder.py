"""Temporary folders that go with their owner or, if that was killed, with the next one."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from filelock import FileLock, Timeout

_PREFIX = "outvote-"
_LOCK = "owner.lock"
_UNOWNED = 7 * 86400.0  # seconds after which a folder without a lock is nobody's


class OwnedFolder:
    """A temporary folder that nobody takes away while its owner lives.

    The owner holds a lock on a file inside; the system lets go of it when the owner dies, however
    it dies. Who makes such a folder first removes those whose lock is free.
    """

    def __init__(self) -> None:
        _sweep(Path(tempfile.gettempdir()))
        self.path, self._lock = _owned()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Take it away; a folder that is gone stays gone."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()


def _owned() -> tuple[Path, FileLock]:
    """A new folder and the lock on it.

    Until the lock is held, another who sweeps takes the folder for one that was left: then there is
    another one.
    """
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = FileLock(path / _LOCK, thread_local=False)
        try:
            lock.acquire()
        except FileNotFoundError:
            continue
        if (path / _LOCK).exists():
            return path, lock
        lock.release()


def _sweep(root: Path) -> None:
    """Remove the folders of owners that are gone."""
    for path in root.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, Timeout):  # another's, gone meanwhile, or in use
            if not path.is_symlink() and path.is_dir() and path.stat().st_uid == os.getuid():
                _remove_if_left(path)


def _remove_if_left(path: Path) -> None:
    lock = path / _LOCK
    if not lock.exists():  # just being made, or not by us
        if time.time() - path.stat().st_mtime > _UNOWNED:
            shutil.rmtree(path, ignore_errors=True)
        return
    with FileLock(lock, timeout=0):
        shutil.rmtree(path, ignore_errors=True)
