"""Commands that are started from a page: ordinary ones, in ordinary folders."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from outvote.core.errors import UsageError

_PROMPT = "$ "
_LAST = 4000  # letters of a log that are shown
_MOST = 4  # at once: each starts a process per target
_PATIENCE = 20.0  # seconds that a command has to end after Ctrl-C


class Runs:
    """Those that were started here, and what they said. They end with the workbench."""

    def __init__(self, root: Path, logs: Path) -> None:
        self._root = root
        self._logs = logs
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def start(self, arguments: Sequence[str], key: str) -> subprocess.Popen[bytes]:
        """Start `outvote` in the folder that was given, for the place of that key."""
        with self._lock:
            self._processes = [one for one in self._processes if one.poll() is None]
            if len(self._processes) >= _MOST:
                raise UsageError(f"{_MOST} commands run already; wait for one, or stop it")
            self._logs.mkdir(parents=True, exist_ok=True)
            with self._log(key).open("ab") as told:
                told.write(f"{_PROMPT}{shlex.join(('outvote', *arguments))}\n".encode())
                told.flush()
                process = subprocess.Popen(
                    [sys.executable, "-m", "outvote", *arguments],
                    cwd=self._root,
                    stdin=subprocess.DEVNULL,
                    stdout=told,
                    stderr=told,
                    start_new_session=True,  # Ctrl-C in our terminal is ours
                )
            self._processes.append(process)
            return process

    def _log(self, key: str) -> Path:
        return self._logs / f"{key}.log"

    def said(self, key: str) -> str:
        """The end of what was printed there: why a command could not begin."""
        path = self._log(key)
        return path.read_text("utf-8", "replace")[-_LAST:] if path.is_file() else ""

    def command_line(self, key: str) -> str:
        """How the last command was started from a page there, as one types it; empty: none was."""
        lines = [line for line in self.said(key).splitlines() if line.startswith(_PROMPT)]
        return lines[-1].removeprefix(_PROMPT) if lines else ""

    def close(self) -> None:
        """End them all, as Ctrl-C does."""
        living = [process for process in self._processes if process.poll() is None]
        for process in living:
            process.send_signal(signal.SIGINT)
        for process in living:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
