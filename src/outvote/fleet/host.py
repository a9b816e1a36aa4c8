"""What lives on a node: an actor that owns a crew with its pool, and does what it is ordered."""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from outvote.bench.reader import helpers
from outvote.campaign.crew import Crew
from outvote.campaign.equipment import equipped
from outvote.campaign.job import FuzzJob, SeedFile
from outvote.campaign.orders import Order
from outvote.campaign.report import Opening, Report, Standing, ToldFinding
from outvote.core.errors import UsageError
from outvote.core.sifted import Sifted
from outvote.core.target import Target
from outvote.core.version import VERSION
from outvote.fleet.needs import Needs
from outvote.fleet.parcels import Parcel, Post, unpacked
from outvote.run.folder import OwnedFolder
from outvote.run.local import LocalPool
from outvote.targets.environments.provide import provide


@dataclass(frozen=True)
class Shipment:
    """A job for another machine: its files are parcels there."""

    job: FuzzJob
    links: tuple[str, ...]
    parcels: Mapping[Path, Parcel]  # by where they lie on the driver's machine
    contents: Mapping[str, Any]  # digest → where the object store has it
    version: str = VERSION

    @staticmethod
    def of(job: FuzzJob, links: tuple[str, ...], put: Any) -> Shipment:
        post = Post(put)
        parcels = {seed.model: post.model(seed.model) for seed in job.seeds}
        parcels |= {seed.data: post.data(seed.data) for seed in job.seeds if seed.data}
        parcels |= {t.setup: post.script(t.setup) for t in job.targets if t.setup}
        return Shipment(job, links, parcels, post.contents)

    def unpack(self, get: Any) -> FuzzJob:
        """The job as it can be done on this node; environments are built here, once."""
        if self.version != VERSION:
            raise UsageError(
                f"{platform.node()} has outvote {VERSION}, and the campaign is of {self.version}; "
                "install the same version on every node"
            )
        here = {path: unpacked(parcel, self.contents, get) for path, parcel in self.parcels.items()}

        def placed(target: Target) -> Target:
            return target if target.setup is None else replace(target, setup=here[target.setup])

        seeds = tuple(
            SeedFile(seed.name, here[seed.model], here[seed.data] if seed.data else None)
            for seed in self.job.seeds
        )
        targets = provide(map(placed, self.job.targets), self.links)
        return self.job.but(seeds=seeds, targets=targets)


@dataclass(frozen=True)
class Arrival:
    """A crew that is ready: where, and which versions its targets have."""

    node: str
    versions: Mapping[str, Any]


@dataclass(frozen=True)
class OrderDone:
    """What came of an order."""

    answer: Any
    files: Mapping[str, bytes]  # of findings, by their path in the campaign's folder
    standing: Standing


class CrewHost:
    """A crew in a process of its own. Ray calls one method at a time."""

    def open(self, shipment: Shipment, known: Collection[str]) -> Arrival:
        import ray

        job = shipment.unpack(ray.get)
        everyone = (*job.targets, *helpers(job.targets))
        self._folder = OwnedFolder()
        jobs = Needs.of(job.targets, job.jobs, None).cpus
        pool = LocalPool(everyone, limits=job.limits, jobs=jobs)
        self._crew = Crew(equipped(job, pool), self._folder.path, set(known))
        heads = self._crew.has.heads
        return Arrival(platform.node(), {name: head["versions"] for name, head in heads.items()})

    def do(self, order: Order) -> OrderDone:
        answer = order.by(self._crew)
        return OrderDone(answer, self._files(answer), self._crew.standing)

    def _files(self, answers: Any) -> dict[str, bytes]:
        """Of all findings that are told with their proof; they are not needed here any more."""
        packed: dict[str, bytes] = {}
        for told in _told_in(answers):
            folder = self._folder.path / "findings" / told.fingerprint
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    packed[path.relative_to(self._folder.path).as_posix()] = path.read_bytes()
        return packed


def _told_in(answers: Any) -> list[ToldFinding]:
    found: list[ToldFinding] = []
    if isinstance(answers, Sifted):  # nothing is told of suspects yet
        return found
    for answer in answers.initial if isinstance(answers, Opening) else answers:
        if isinstance(answer, Report):
            found += answer.findings
        elif isinstance(answer, ToldFinding):
            found.append(answer)
    return [told for told in found if told.data]
