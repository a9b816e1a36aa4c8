"""The pool on this machine: long-lived processes, asked side by side, replaced when they die."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

from outvote.core import codec
from outvote.core.blackbox import Position
from outvote.core.blobs import BlobStore
from outvote.core.model import digest_of
from outvote.core.protocol import Hello, R, Request, ScriptText, Start
from outvote.core.target import Outcome, Run, Target
from outvote.run.folder import OwnedFolder
from outvote.run.nursery import Nursery
from outvote.run.patience import SharedPatience
from outvote.run.places import Places
from outvote.run.pool import Ask, asked_each, unheard
from outvote.run.process import Limits, Process
from outvote.run.scripts import script_of

T = TypeVar("T")
_THREADS = 16


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
        self._custom = custom
        self._scripts: dict[Path, ScriptText] = {}  # as they were when first needed
        self._allow_code = allow_code
        self._folder = OwnedFolder()
        self.blobs = BlobStore(self._folder.path / "blobs")
        self._limits = limits or Limits()
        self._numbers = itertools.count()
        self._processes: dict[str, Process] = {}
        self._hellos: dict[str, Run[Hello]] = {}
        self._sessions: dict[tuple[str, str], Process] = {}  # (target, session): who holds it
        self._hangs: dict[str, dict[str, Run]] = {}  # by target and request
        self._locks = {name: Places() for name in self.targets}
        self.jobs = jobs or os.cpu_count() or 1
        self._turns = Places(self.jobs)
        # More than there are targets: some may be added. None is made before it is needed.
        self._threads = ThreadPoolExecutor(max_workers=max(_THREADS, len(self.targets)))
        self._nursery = Nursery()
        self.restarts = dict.fromkeys(self.targets, 0)
        self.peaks = dict.fromkeys(self.targets, 0)
        self._closed = False

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End every worker at once, whatever it is doing."""
        self._closed = True
        self._nursery.end()
        for process in list(self._processes.values()):
            process.end()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in list(self._processes.values()):
            process.kill()
        self._nursery.close()
        self._folder.remove()

    def add(self, target: Target) -> None:
        """Take another target in, not started yet; who had its name ends."""
        self.stop(target.name)
        self.targets[target.name] = target
        self._locks[target.name] = Places()
        self._hangs.pop(target.name, None)
        self.restarts[target.name] = self.peaks[target.name] = 0

    def stop(self, name: str) -> None:
        """End one worker; its memory is free again."""
        process = self._processes.pop(name, None)
        if process is not None:
            process.kill()
        self._hellos.pop(name, None)

    def start(self, names: Iterable[str] | None = None) -> dict[str, Run[Hello]]:
        """Start workers side by side; each Run says what came up, or why it did not.

        Workers that are up already are not started again.
        """
        wanted = list(self.targets if names is None else names)
        missing = [name for name in wanted if name not in self._hellos]
        self._hellos.update(self._each(missing, self._started))
        return {name: self._hellos[name] for name in wanted}

    def ask(self, name: str, request: Request[R]) -> Run[R]:
        """One worker's answer. A dead worker is replaced first; its sessions are lost with it.

        Who asks one alone can do nothing else meanwhile, and goes before those who ask several.
        """
        patience = self._patience(request)
        return self._ask(name, request, patience, first=True)

    def ask_all(
        self,
        names: Iterable[str],
        request: Request[R],
        done: Callable[[Run[R]], None] = unheard,
    ) -> dict[str, Run[R]]:
        """The same question to several workers at once; `done` hears of each as it ends."""
        patience = self._patience(request)

        def ask(name: str) -> Run[R]:
            run = self._ask(name, request, patience)
            if not self._closed:
                done(run)
            return run

        return self._each(list(names), ask)

    def ask_each(
        self, names: Iterable[str], requests: Sequence[Request[R]]
    ) -> list[dict[str, Run[R]]]:
        """Several questions to several workers; each goes on to its next without waiting."""
        return asked_each(self, names, requests)

    def talk_to_each(self, names: Iterable[str], talk: Callable[[str, Ask], T]) -> dict[str, T]:
        """Questions of which one may depend on the answer before, to several workers at once."""
        # By request, which is kept: another one could get its number.
        shared: dict[int, tuple[Request[Any], SharedPatience]] = {}

        def answer(name: str) -> T:
            def ask(request: Request[R]) -> Run[R]:
                own = request, self._patience(request)
                _, patience = shared.setdefault(id(request), own)
                return self._ask(name, request, patience)

            return talk(name, ask)

        return self._each(list(names), answer)

    def _patience(self, request: Request[Any]) -> SharedPatience:
        return SharedPatience(self._limits.silence_seconds, request.compiles)

    def memory(self, name: str) -> int:
        """Bytes that a worker holds now; 0 while it is down."""
        process = self._processes.get(name)
        return process.check_peak() if process is not None and process.alive else 0

    def recycle(self, name: str) -> None:
        """End a worker; its next question starts a fresh one."""
        with self._locks[name].one():
            process = self._processes.get(name)
            if process is not None:
                process.kill()

    def position(self, name: str) -> Position | None:
        """Where a worker is in its request; None while it is down."""
        process = self._processes.get(name)
        return process.position if process else None

    def _ask(
        self, name: str, request: Request[R], patience: SharedPatience, first: bool = False
    ) -> Run[R]:
        target = self.targets[name]
        with self._locks[name].one(first), self._turns.one(first):
            process = self._processes.get(name)
            living = process if process is not None and process.alive else None  # asked once
            lost = self._without_session(name, request, living) or self._hung_before(name, request)
            if lost is not None:
                return lost
            if living is None:
                hello = self._started(name)
                if not hello.ok:
                    return Run(name, hello.outcome, message=hello.message, detail=hello.detail)
                self.restarts[name] += process is not None
                living = self._processes[name]
            run = living.ask(request, lambda: patience.seconds(target))
            patience.note(run)
            if request.opens and run.ok:
                self._sessions[name, request.opens] = living
            if run.outcome is Outcome.HANG:
                self._hangs.setdefault(name, {})[_identity(request)] = run
            if living.alive:
                living.check_peak()
            self.peaks[name] = max(self.peaks[name], living.peak_bytes)
            return run

    def _without_session(
        self, name: str, request: Request[R], living: Process | None
    ) -> Run[R] | None:
        """What to say of a request whose session went with an earlier worker."""
        if not request.within:
            return None
        if living is not None and self._sessions.get((name, request.within)) is living:
            return None
        text = f"the {request.within} was lost: its worker ended, and a fresh one knows nothing"
        return Run(name, Outcome.LOST, message=text)

    def _hung_before(self, name: str, request: Request[R]) -> Run[R] | None:
        """A target that hung on a request is not asked it again: it would cost the same wait."""
        if name not in self._hangs:
            return None
        return self._hangs[name].get(_identity(request))

    def _started(self, name: str) -> Run[Hello]:
        """A fresh worker in the place of an old one, and its first words."""
        if self._closed:
            raise RuntimeError("the pool is closed")
        old = self._processes.pop(name, None)
        if old is not None:
            old.kill()
        target = self.targets[name]
        folder = self._folder.path / "workers" / str(next(self._numbers))
        settings = Start(
            worker=f"{target.dialect}.workers.{target.worker}",
            backend=target.backend,
            mode=target.mode,
            allow_code=self._allow_code,
            setup=self._script(target.setup),
            custom=self._script(self._custom),
            blobs=str(self.blobs.folder),
            folder=str(folder),
        )
        try:
            process = Process(target, folder, settings, self._limits, self._nursery)
        except OSError as error:
            told = f"its interpreter {target.python} could not be started: {error.strerror}"
            return Run(name, Outcome.ERROR, message=told, refused=True)
        self._processes[name] = process
        if self._closed:  # meanwhile
            process.end()
        run = process.greet()
        if not run.ok:
            process.kill()
        return run

    def _script(self, path: Path | None) -> ScriptText | None:
        """The same text for every worker of this pool, also if its file changes meanwhile."""
        if path is not None and path not in self._scripts:
            self._scripts[path] = script_of(path, self.blobs)
        return None if path is None else self._scripts[path]

    def _each(self, names: list[str], ask: Callable[[str], T]) -> dict[str, T]:
        """What each gives, side by side. Nobody is left at work when one of them raises."""
        futures = {name: self._threads.submit(ask, name) for name in names}
        try:
            return {name: future.result() for name, future in futures.items()}
        except KeyboardInterrupt:
            self.close()
            raise
        except BaseException:
            for future in futures.values():
                future.cancel()
            wait(futures.values())
            raise


def _identity(request: Request[Any]) -> str:
    """What is asked, as a digest; arrays count by their bytes."""
    data, arrays = codec.written(request)
    parts = [[array.dtype.name, list(array.shape), array.tobytes().hex()] for array in arrays]
    return digest_of(type(request).__name__, data, parts)
