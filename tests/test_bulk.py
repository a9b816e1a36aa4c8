"""Campaigns in bulk, with crews that die: numbers are tried once, what parts is told once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outvote.campaign import sift
from outvote.campaign.campaign import Campaign
from outvote.campaign.crews import Brood, Deadly, OneCrew
from outvote.campaign.job import Budget, FuzzJob
from outvote.campaign.progress import Progress
from outvote.commands.fuzz.run import resume, start
from outvote.core.dialect import dialect
from outvote.core.target import Target
from outvote.run.local import LocalPool
from outvote.store import facts
from outvote.store.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("toy_dialect")]
PACK = 64


def targets_with(fault: str) -> dict[str, Target]:
    known = dialect("toy").targets.BUILT_IN
    odd = replace(known["toy-c"], name="odd", env={"TOY_FAULT": fault})
    return {"toy-a": known["toy-a"], "toy-b": known["toy-b"], "odd": odd}


def job_of(fault: str, cases: int, **more: Any) -> FuzzJob:
    settings = {"confirm": 0, "minimise": 0.0, **more}
    targets = tuple(targets_with(fault).values())
    return FuzzJob((), targets, "layers", Budget(mutants=cases), **settings)


def left_in(folder: Path) -> list[list[Any]]:
    with closing(Store(folder, create=False)) as store:
        return store.fact(facts.SIFTED_LEFT)


def test_what_was_begun_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sift, "_STRETCH", 2 * PACK)

    def stop(progress: Progress) -> None:
        if progress.tested == 3 * PACK:
            raise KeyboardInterrupt

    result = start(job_of("Softmax", 6 * PACK), tmp_path, stop)
    assert (result["tested"], result["interrupted"]) == (3 * PACK, True)
    assert left_in(tmp_path) == [[3 * PACK, 4 * PACK], [4 * PACK, None]]
    result = resume(tmp_path, targets_with("Softmax"))
    assert (result["tested"], result["valid"], result["interrupted"]) == (6 * PACK, 6 * PACK, False)
    assert left_in(tmp_path) == [[6 * PACK, None]]
    (finding,) = result["findings"]
    assert (finding["accused"], finding["layer_kind"]) == ("odd", "Softmax")
    assert finding["count"] > 20, "further ones are known by their look"


class Interrupted(OneCrew):
    """As on a cluster: no answer to some orders, since crew after crew died of them."""

    deadly: tuple[str, ...] = ()

    def finish_one(self, more: Callable[[], Brood | None]) -> bool:
        brood = more()
        if brood is None:
            return False
        answer, died = None, False
        while True:
            try:
                order = brood.throw(Deadly("all died")) if died else brood.send(answer)
            except StopIteration:
                return True
            if died := (order.doing,) == self.deadly[:1]:
                self.deadly = self.deadly[1:]
            else:
                answer = order.by(self.crew)


@contextmanager
def campaign(job: FuzzJob, folder: Path, *deadly: str) -> Iterator[tuple[Campaign, Store]]:
    with closing(Store(folder, create=True)) as store, LocalPool(job.targets) as pool:
        store.note(facts.JOB, job.stored())
        crews = Interrupted(job, pool, folder, store.tell)
        crews.deadly = deadly
        with closing(crews):
            yield Campaign(job, store, crews), store


def test_numbers_of_which_every_crew_dies_are_tried_and_invalid(tmp_path: Path) -> None:
    with campaign(job_of("", 3 * PACK), tmp_path, "sift") as (running, store):
        assert running.run()
        assert store.fact(facts.SIFTED)["tested"] == 3 * PACK
        assert store.fact(facts.SIFTED)["valid"] == 2 * PACK


def test_a_look_of_which_every_crew_dies_leaves_no_number_out(tmp_path: Path) -> None:
    with campaign(job_of("Softmax", PACK), tmp_path, "look") as (running, store):
        assert running.run()
        assert [row.number for row in store.rows()] == [1]
        assert store.findings() == []
