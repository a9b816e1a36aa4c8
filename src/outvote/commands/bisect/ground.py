"""Where releases are tried: one by one on this machine, or side by side on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from outvote.commands.bisect.job import BisectJob
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.target import Target
from outvote.fleet.fleet import pool_on
from outvote.fleet.pool import FleetPool
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.targets.environments.provide import Announce, provide, yanked


class Ground(Protocol):
    """A pool that holds the references, and how a release comes into it."""

    @property
    def pool(self) -> Pool: ...

    @property
    def against(self) -> Sequence[Target]: ...

    @property
    def others(self) -> Sequence[Target]:
        """Who reads the model where the references do not."""
        ...

    def prepared(self, target: Target) -> Target:
        """A release that can be started there; UsageError where it is known that it cannot."""
        ...

    def withdrawn(self, target: Target) -> str:
        """That a release was yanked, where it shows when it has been started; or nothing."""
        ...

    def at_once(self, target: Target) -> int:
        """How many releases have room side by side."""
        ...


@dataclass(frozen=True)
class Here:
    pool: LocalPool
    against: Sequence[Target]
    others: Sequence[Target]
    links: tuple[str, ...]
    announce: Announce

    def prepared(self, target: Target) -> Target:
        (ready,) = provide([target], self.links, self.announce)
        if reason := yanked(target):
            raise UsageError(f"yanked: {reason}")
        return ready

    def withdrawn(self, target: Target) -> str:
        return ""

    def at_once(self, target: Target) -> int:
        return 1


@dataclass(frozen=True)
class There:
    """Environments are built on the nodes that start them."""

    pool: FleetPool
    against: Sequence[Target]
    others: Sequence[Target]

    def prepared(self, target: Target) -> Target:
        return target

    def withdrawn(self, target: Target) -> str:
        reason = self.pool.withdrawn.get(target.name)
        return f"yanked: {reason}" if reason else ""

    def at_once(self, target: Target) -> int:
        return self.pool.room_for(target)


@contextmanager
def ground_of(job: BisectJob, announce: Announce) -> Iterator[Ground]:
    """The one that the job names, while the block runs."""
    known = dialect(job.target.dialect).targets
    if job.cluster is None:
        against = provide(job.against, job.links, announce)
        others = known.helpers(against)
        with LocalPool([*against, *others], limits=job.limits) as pool:
            yield Here(pool, against, others, job.links, announce)
        return
    others = known.helpers(job.against)
    everyone = [*job.against, *others, job.target]
    with pool_on(job.cluster, everyone, limits=job.limits, links=job.links) as there:
        yield There(there, job.against, others)
