"""The pool on this machine: long-lived processes, asked side by side, replaced when they die."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from outvote.core.blackbox import Position
from outvote.core.blobs import BlobStore
from outvote.core.target import Run, Target
from outvote.run.pool import Request
from outvote.run.process import Limits, Process


class LocalPool:
    """The workers of a session. Use as a context manager: leaving it ends every process."""

    def __init__(
        self,
        targets: Iterable[Target],
        *,
        limits: Limits | None = None,
        custom: Path | None = None,
        allow_code: bool = False,
        jobs: int | None = None,
    ) -> None:
        self.targets = {target.name: target for target in targets}
        self._folder = tempfile.TemporaryDirectory(prefix="outvote-")
        root = Path(self._folder.name)
        self.blobs = BlobStore(root / "blobs")
        self._limits = limits or Limits()
        self._settings = {
            "blobs": str(self.blobs.folder),
            "custom": str(custom.absolute()) if custom else None,
            "allow_code": allow_code,
        }
        self._processes: dict[str, Process] = {}
        self._hellos: dict[str, Run] = {}
        self._locks = {name: threading.Lock() for name in self.targets}
        self._turns = threading.Semaphore(jobs or os.cpu_count() or 1)
        self._threads = ThreadPoolExecutor(max_workers=max(1, len(self.targets)))
        self.restarts = dict.fromkeys(self.targets, 0)
        self.peaks = dict.fromkeys(self.targets, 0)
        self._closed = False

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every worker at once, whatever it is doing."""
        self._closed = True
        for process in list(self._processes.values()):
            process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in list(self._processes.values()):
            process.kill()
        self._folder.cleanup()

    def add(self, target: Target) -> None:
        """Take another target in, not started yet."""
        self.targets[target.name] = target
        self._locks[target.name] = threading.Lock()
        self.restarts[target.name] = self.peaks[target.name] = 0

    def stop(self, name: str) -> None:
        """End one worker; its memory is free again."""
        process = self._processes.pop(name, None)
        if process is not None:
            process.kill()
        self._hellos.pop(name, None)

    def start(self, names: Iterable[str] | None = None) -> dict[str, Run]:
        """Start workers side by side; each Run says what came up, or why it did not.

        Workers that are up already are not started again.
        """
        wanted = list(self.targets if names is None else names)
        missing = [name for name in wanted if name not in self._hellos]
        for name in missing:
            self._spawn(name)
        self._hellos.update(self._each(missing, self._greeted))
        return {name: self._hellos[name] for name in wanted}

    def ask(self, name: str, request: Request) -> Run:
        """One worker's answer. A dead worker is replaced first."""
        with self._locks[name], self._turns:
            process = self._processes.get(name)
            if process is None or not process.alive:
                self._spawn(name)
                hello = self._greeted(name)
                if not hello.ok:
                    return hello
                self.restarts[name] += process is not None
                process = self._processes[name]
            message = {"op": request.op, **request.arguments}
            run = process.ask(message, request.arrays, request.steps)
            process.check_peak()
            self.peaks[name] = max(self.peaks[name], process.peak_bytes)
            return run

    def ask_all(
        self,
        names: Iterable[str],
        request: Request,
        done: Callable[[Run], None] = lambda run: None,
    ) -> dict[str, Run]:
        """The same question to several workers at once; `done` hears of each as it ends."""

        def ask(name: str) -> Run:
            run = self.ask(name, request)
            if not self._closed:
                done(run)
            return run

        return self._each(list(names), ask)

    def ask_each(self, names: Iterable[str], requests: Sequence[Request]) -> list[dict[str, Run]]:
        """Several questions to several workers; each goes on to its next without waiting."""
        runs: dict[str, list[Run]] = {}

        def answer(name: str) -> Run:
            runs[name] = [self.ask(name, request) for request in requests]
            return runs[name][-1]

        wanted = list(names)
        if requests:
            self._each(wanted, answer)
        return [{name: runs[name][i] for name in wanted} for i in range(len(requests))]

    def memory(self, name: str) -> int:
        """Bytes that a worker holds now; 0 while it is down."""
        process = self._processes.get(name)
        return process.check_peak() if process is not None and process.alive else 0

    def recycle(self, name: str) -> None:
        """End a worker; its next question starts a fresh one."""
        with self._locks[name]:
            process = self._processes.get(name)
            if process is not None:
                process.kill()

    def position(self, name: str) -> Position | None:
        process = self._processes.get(name)
        return process.position if process else None

    def _spawn(self, name: str) -> None:
        if self._closed:
            raise RuntimeError("the pool is closed")
        old = self._processes.pop(name, None)
        if old is not None:
            old.kill()
        folder = Path(self._folder.name) / "workers"
        self._processes[name] = Process(self.targets[name], folder, self._settings, self._limits)

    def _greeted(self, name: str) -> Run:
        process = self._processes[name]
        run = process.greet()
        if not run.ok:
            process.kill()
        return run

    def _each(self, names: list[str], ask: Callable[[str], Run]) -> dict[str, Run]:
        futures = {name: self._threads.submit(ask, name) for name in names}
        try:
            return {name: future.result() for name, future in futures.items()}
        except KeyboardInterrupt:
            self.close()
            raise
