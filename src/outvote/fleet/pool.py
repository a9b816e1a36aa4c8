"""A Pool whose workers are spread over a cluster: an actor for each target, where Ray has room.

Blobs travel by content with the requests and answers that name them, to each node once.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from outvote.core import codec
from outvote.core.blackbox import Position
from outvote.core.blobs import BlobStore
from outvote.core.errors import UsageError
from outvote.core.files import write_atomically
from outvote.core.protocol import Hello, R, Request
from outvote.core.target import Outcome, Run, Target
from outvote.fleet.needs import Needs
from outvote.fleet.parcels import Parcel, Post, unpacked
from outvote.run.folder import OwnedFolder
from outvote.run.local import LocalPool
from outvote.run.pool import Ask, asked_each, unheard
from outvote.run.process import Limits
from outvote.targets.environments.provide import provide, yanked

T = TypeVar("T")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_TRIES = 3  # hosts that may die of one question
_THREADS = 64


@dataclass(frozen=True)
class Berth:
    """What a worker on another machine is made of."""

    target: Target
    limits: Limits
    links: tuple[str, ...]
    allow_code: bool
    setup: Parcel | None
    custom: Parcel | None
    contents: dict[str, Any]  # digest → where the object store has it


@dataclass(frozen=True)
class HostAnswer:
    """What a worker on another machine said, the blobs that it names, and how the worker is."""

    run: Run[Any]
    blobs: dict[str, bytes]
    restarts: int
    peak: int
    withdrawn: str  # why a release that the target stands on was yanked


class TargetHost:
    """One target on its node, in a pool of its own."""

    def __init__(self, berth: Berth) -> None:
        self._berth, self._name = berth, berth.target.name

    @cached_property
    def _pool(self) -> LocalPool:
        """Its environment is built with the first question: why it cannot be, is an answer."""
        import ray

        berth = self._berth

        def placed(parcel: Parcel | None) -> Path | None:
            return None if parcel is None else unpacked(parcel, berth.contents, ray.get)

        target = replace(berth.target, setup=placed(berth.setup))
        return LocalPool(
            provide([target], berth.links),
            limits=berth.limits,
            custom=placed(berth.custom),
            allow_code=berth.allow_code,
        )

    def start(self) -> HostAnswer:
        return self._answer(self._pool.start()[self._name])

    def ask(self, request: Request[Any], blobs: dict[str, Any]) -> HostAnswer:
        import ray

        for digest, ref in blobs.items():
            _keep(self._pool.blobs, digest, ray.get(ref))
        return self._answer(self._pool.ask(self._name, request))

    def recycle(self) -> None:
        self._pool.recycle(self._name)

    def memory(self) -> int:
        return self._pool.memory(self._name)

    def position(self) -> Position | None:
        return self._pool.position(self._name)

    def _answer(self, run: Run[Any]) -> HostAnswer:
        named = digests_in(run.answer) if run.answer is not None else set()
        blobs = {digest: _bytes_of(self._pool.blobs, digest) for digest in named}
        found = {digest: data for digest, data in blobs.items() if data is not None}
        pool = self._pool
        restarts, peak = pool.restarts[self._name], pool.peaks[self._name]
        return HostAnswer(run, found, restarts, peak, yanked(self._berth.target))


class FleetPool:
    """The workers of a session on a cluster. Leaving it ends them all."""

    def __init__(
        self,
        ray: Any,
        targets: Iterable[Target],
        *,
        limits: Limits,
        links: tuple[str, ...] = (),
        custom: Path | None = None,
        allow_code: bool = False,
    ) -> None:
        self._ray = ray
        self.targets = {target.name: target for target in targets}
        self._limits, self._links, self._allow_code = limits, links, allow_code
        self._post = Post(ray.put)
        self._custom = self._post.script(custom) if custom else None
        self._folder = OwnedFolder()
        self.blobs = BlobStore(self._folder.path / "blobs")
        self._refs: dict[str, Any] = {}  # digest → where the object store has it
        self._hosts: dict[str, Any] = {}
        self._held: dict[str, set[str]] = {}  # digests that a host has
        self._hellos: dict[str, Run[Hello]] = {}
        self._locks = {name: threading.Lock() for name in self.targets}
        self._threads = ThreadPoolExecutor(max_workers=_THREADS)
        self.jobs = _THREADS
        self.restarts = dict.fromkeys(self.targets, 0)
        self.peaks = dict.fromkeys(self.targets, 0)
        self.withdrawn: dict[str, str] = {}  # why a release that a target stands on was yanked
        self._closed = False

    def __enter__(self) -> FleetPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End every worker at once, whatever it is doing."""
        self._closed = True
        for name in list(self._hosts):
            self.stop(name)
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._folder.remove()

    def add(self, target: Target) -> None:
        """Take another target in, not started yet; who had its name ends."""
        self.stop(target.name)
        self.targets[target.name] = target
        self._locks[target.name] = threading.Lock()
        self.restarts[target.name] = self.peaks[target.name] = 0

    def stop(self, name: str) -> None:
        """End one worker and its host."""
        host = self._hosts.pop(name, None)
        self._hellos.pop(name, None)
        if host is not None:
            with suppress(Exception):  # it is dead, or Ray is
                self._ray.kill(host)

    def recycle(self, name: str) -> None:
        """End a worker; its next question starts a fresh one."""
        if name in self._hosts:
            self._ray.get(self._hosts[name].recycle.remote())

    def start(self, names: Iterable[str] | None = None) -> dict[str, Run[Hello]]:
        """Start workers side by side; each Run says what came up, or why it did not."""
        wanted = list(self.targets if names is None else names)
        missing = [name for name in wanted if name not in self._hellos]
        self._hellos.update(self._each(missing, lambda n: self._called(n, "start")))
        return {name: self._hellos[name] for name in wanted}

    def ask(self, name: str, request: Request[R]) -> Run[R]:
        """One worker's answer. A host that died is replaced first."""
        with self._locks[name]:
            return self._called(name, "ask", request)

    def ask_all(
        self, names: Iterable[str], request: Request[R], done: Callable[[Run[R]], None] = unheard
    ) -> dict[str, Run[R]]:
        """The same question to several workers at once; `done` hears of each as it ends."""

        def ask(name: str) -> Run[R]:
            run = self.ask(name, request)
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

        def talk_to(name: str) -> T:
            def ask(request: Request[R]) -> Run[R]:
                return self.ask(name, request)

            return talk(name, ask)

        return self._each(list(names), talk_to)

    def room_for(self, target: Target) -> int:
        """How many workers like it have room beside those that run; for one is waited."""
        return max(1, Needs.of([target], None, None).fit_into(self._ray.available_resources()))

    def memory(self, name: str) -> int:
        """Bytes that a worker holds now; 0 while it is down."""
        found: int | None = self._glance(name, "memory")
        return found or 0

    def position(self, name: str) -> Position | None:
        """Where a worker is in its request; None while it is down."""
        found: Position | None = self._glance(name, "position")
        return found

    def _glance(self, name: str, what: str) -> Any:
        host = self._hosts.get(name)
        if host is None:
            return None
        try:
            return self._ray.get(getattr(host, what).remote(), timeout=1.0)
        except self._ray.exceptions.RayError:  # it dies, or has no time to say
            return None

    def _called(self, name: str, what: str, request: Request[Any] | None = None) -> Run[Any]:
        """What a host answers. One that died is replaced; what it was told is lost with it."""
        reason = ""
        for _ in range(_TRIES):
            if self._closed:
                raise RuntimeError("the pool is closed")
            fresh = name not in self._hosts
            if fresh:
                self._hosts[name], self._held[name] = self._berthed(name), set()
            if fresh and request is not None and request.within:
                told = f"the {request.within} was lost with the node that held it"
                return Run(name, Outcome.LOST, message=told)
            try:
                answer = self._ray.get(self._sent(name, what, request))
            except self._ray.exceptions.RayTaskError as error:
                if not isinstance(error.cause, UsageError):
                    raise
                if request is None:  # a target that cannot be had there does not start
                    return Run(name, Outcome.ERROR, message=str(error.cause))
                raise UsageError(str(error.cause)) from error
            except self._ray.exceptions.RayError as error:
                reason = " ".join(str(error).split())[:300]
                self.stop(name)
                continue
            return self._taken(name, answer)
        return Run(name, Outcome.CRASH, message=f"its host on the cluster died: {reason}")

    def _sent(self, name: str, what: str, request: Request[Any] | None) -> Any:
        host = self._hosts[name]
        if request is None:
            return getattr(host, what).remote()
        named = {d for d in digests_in(request) - self._held[name] if self._has(d)}
        self._held[name] |= named
        return host.ask.remote(request, {digest: self._ref(digest) for digest in named})

    def _taken(self, name: str, answer: HostAnswer) -> Run[Any]:
        for digest, data in answer.blobs.items():
            _keep(self.blobs, digest, data)
            self._held[name].add(digest)
        self.restarts[name] = answer.restarts
        self.peaks[name] = max(self.peaks[name], answer.peak)
        self.withdrawn[name] = answer.withdrawn
        return answer.run

    def _has(self, digest: str) -> bool:
        return (self.blobs.folder / digest).exists()

    def _ref(self, digest: str) -> Any:
        if digest not in self._refs:
            self._refs[digest] = self._ray.put(_bytes_of(self.blobs, digest))
        return self._refs[digest]

    def _berthed(self, name: str) -> Any:
        target = self.targets[name]
        setup = self._post.script(target.setup) if target.setup else None
        berth = Berth(
            target,
            self._limits,
            self._links,
            self._allow_code,
            setup,
            self._custom,
            self._post.contents,
        )
        host = self._ray.remote(TargetHost).options(
            scheduling_strategy="SPREAD",
            max_concurrency=2,  # a glance while it works
            **Needs.of([target], None, None).options,
        )
        return host.remote(berth)

    def _each(self, names: list[str], ask: Callable[[str], T]) -> dict[str, T]:
        futures = {name: self._threads.submit(ask, name) for name in names}
        return {name: future.result() for name, future in futures.items()}


def digests_in(message: Any) -> set[str]:
    """The blobs that a request or an answer names."""
    data, _ = codec.written(message)
    return set(_digests(data))


def _digests(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        if _DIGEST.fullmatch(data):
            yield data
    elif isinstance(data, dict):
        for value in data.values():
            yield from _digests(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _digests(value)


def _bytes_of(blobs: BlobStore, digest: str) -> bytes | None:
    path = blobs.folder / digest
    return path.read_bytes() if path.exists() else None


def _keep(blobs: BlobStore, digest: str, data: bytes) -> None:
    if not (blobs.folder / digest).exists():
        write_atomically(blobs.folder / digest, lambda file: file.write(data))
