"""The way in: crews on a cluster for one campaign, from joining it to leaving it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from outvote.campaign.job import FuzzJob
from outvote.core.target import Target
from outvote.fleet.address import Address
from outvote.fleet.cluster import joined
from outvote.fleet.crews import Note, RayCrews
from outvote.fleet.needs import Needs
from outvote.fleet.pool import FleetPool


@contextmanager
def pool_on(address: Address, targets: Sequence[Target], **more: Any) -> Iterator[FleetPool]:
    """A pool whose workers are there as long as the block runs."""
    needs = Needs.of(targets, None, None)
    with joined(address, needs) as ray, FleetPool(ray, targets, **more) as pool:
        yield pool


@contextmanager
def crews_on(
    address: Address,
    job: FuzzJob,
    links: tuple[str, ...],
    out: Path,
    note: Note,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[RayCrews]:
    """Crews that are there as long as the block runs; `say` tells the user what they wait for."""
    needs = Needs.of(job.targets, job.jobs, job.memory_limit)
    with joined(address, needs) as ray:
        crews = RayCrews(ray, address, needs, job, links, out, note, say)
        try:
            yield crews
        finally:
            crews.close()
