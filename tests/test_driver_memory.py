"""What a campaign's driver holds does not grow with its mutants."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pytest

from conftest import fake
from outvote.campaign import ancestry
from outvote.campaign.campaign import Campaign
from outvote.campaign.crews import Brood
from outvote.campaign.docket import Docket, OddCase
from outvote.campaign.family import Family
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.keeper import Keeper
from outvote.campaign.novelty import Novelty
from outvote.campaign.orders import Look, Make, Order, TryOut
from outvote.campaign.progress import Progress
from outvote.campaign.report import Opening, Report, Standing, ToldFinding
from outvote.campaign.totals import Totals
from outvote.core.protocol import LinesReached
from outvote.core.sifted import CauseKey, SuspectCase
from outvote.search import members
from outvote.search.members import Member
from outvote.search.strategy import Choice, Experience, Offspring
from outvote.store import facts
from outvote.store.rows import Birth
from outvote.store.store import Row, Sample, Store

ROUND, ROUNDS = 500, 4  # mutants; the first two are to warm up
MOST = 32  # bytes that a mutant may leave behind: less than its number in a list


class MadeUpCrews:
    """A crew whose mutants are made up: most breed, some are odd, and some cannot be made."""

    width = None
    side_by_side = 1
    at_hand: ClassVar[Collection[str]] = ()
    standing = Standing()

    def __init__(self) -> None:
        self._made = 0

    def open(self, begun: bool, known: Collection[str]) -> Opening:
        seed = Row(1, None, 1, None, None, "ok", 0.5, False, 5, 0.1, 0.0)
        return Opening({}, ("Dense",), {}, (Report(seed, {("a", "b"): np.zeros(2)}),))

    def finish_one(self, more: Callable[[], Brood | None]) -> bool:
        brood, answer = more(), None
        if brood is None:
            return False
        while True:
            try:
                answer = self._answer(brood.send(answer))
            except StopIteration:
                return True

    def _answer(self, order: Order) -> Any:
        if isinstance(order, Make):
            self._made += 1
            return [(self._made + place) % 9 > 0 for place in range(len(order.births))]
        if isinstance(order, TryOut | Look):
            return [_report(birth) for birth in order.births]
        return []

    def drifts(self, samples: Sequence[Sample]) -> Sequence[ToldFinding]:
        return ()

    growths = drifts

    def confirm(self, times: int, seconds: float | None) -> Iterable[ToldFinding]:
        return ()

    def close(self) -> None:
        pass


def _report(birth: Birth) -> Report:
    number = birth.number
    outcome, acc = ("ok", number % 20 / 20) if number % 13 else ("invalid", None)
    origin = (number, birth.parent, 1, birth.rule, birth.seed)
    row = Row(*origin, outcome, acc, False, 5, 0.1, 0.0, network=f"{number:032x}")
    lines = {"a": LinesReached({"nn.py": (number % 100,)}, 100)}
    odd = CauseKey(f"Dense {number % 3}", "") if number % 4 == 0 else None
    mad = {("a", "b"): np.full(2, acc)} if acc is not None else {}
    return Report(row, mad, kinds=("Dense",), values=("Dense units odd",), odd=odd, lines=lines)


@pytest.mark.slow
def test_a_mutant_leaves_nothing_behind_in_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tracemalloc` says so, once the pool of models is full; every strategy is asked."""
    monkeypatch.setattr(members, "MOST", 64)
    monkeypatch.setattr(ancestry, "KEPT", 64)
    job = FuzzJob(
        (SeedFile("seed", tmp_path / "model", None),),
        (fake("a"), fake("b")),
        "mixed",
        Budget(mutants=ROUND * ROUNDS),
        confirm=0,
    )
    held: list[tracemalloc.Snapshot] = []

    def watch(progress: Progress) -> None:
        if progress.tested >= ROUND * (len(held) + 2):
            gc.collect()
            held.append(tracemalloc.take_snapshot())

    with closing(Store(tmp_path, create=True)) as store:
        store.note(facts.JOB, job.stored())
        campaign = Campaign(job, store, MadeUpCrews())
        tracemalloc.start()
        try:
            campaign.run(watch)
        finally:
            tracemalloc.stop()
    first, *_, last = held
    grown = sorted(last.compare_to(first, "lineno"), key=lambda one: -one.size_diff)
    total = sum(one.size_diff for one in grown)
    mutants = ROUND * (len(held) - 1)
    assert total < MOST * mutants, "\n".join(map(str, grown[:5]))


def test_a_full_pool_lets_the_oldest_mutant_go_and_goes_on_where_it_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(members, "MOST", 3)
    rules = {"LC": "lemon", "LR": "lemon", "NET": "audee", "FL": "layers"}
    known = Experience.new({1: 0.5, 2: 0.5}, rules, 0)
    for number in range(3, 8):
        known.learn(Choice(1, "LC"), Offspring(number, 0.5))
        assert known.join(Offspring(number, number / 10))
    assert sorted(member.number for member in known.members) == [1, 2, 5, 6, 7]
    assert known.members[0] == Member(1, 0.5, chosen=5)
    assert list(known.members.odds) == [1 / 6, 1, 1, 1, 1]
    assert not known.learn(Choice(3, "LR"), Offspring(8, 9.9)), "its parent has left"
    assert known.tallies["LR"].used == 1
    again = Experience.restored(json.loads(json.dumps(known.state())))
    assert list(again.members) == list(known.members)
    for one in (known, again):
        one.join(Offspring(9, 0.9))
    assert again.state() == known.state()
    assert {member.number for member in again.members} == {1, 2, 6, 7, 9}


def test_a_pool_that_an_earlier_version_wrote_is_read() -> None:
    state = Experience.new({1: 0.5}, {"LC": "lemon"}, 0).state()
    state["members"] = [[1, 0.5, 2], [7, 0.25, 1]]
    known = Experience.restored(state).members
    assert list(known) == [Member(1, 0.5, 2), Member(7, 0.25, 1)]
    assert known.place_of(7) == 1


def test_a_crew_knows_of_descent_what_its_order_says() -> None:
    family = Family({}, {}, cast(Any, None))
    family.learn([Birth(3, 2, "LC", 0), Birth(2, 1, "LC", 0)])
    assert family.root_of(3) == 1
    family.learn([Birth(4, 2, "LC", 0)])
    assert (family.root_of(4), family.root_of(3)) == (2, 3)


def test_what_looks_like_something_that_waits_is_in_the_store(tmp_path: Path) -> None:
    key, other = CauseKey("Dense", "a"), CauseKey("Dense", "b")
    with closing(Store(tmp_path, create=True)) as store:
        store.note(facts.JOB, {})
        totals = Totals(store)
        book = Docket(store, Keeper(store, lambda: 0.0), totals, confirms=True)
        for number, looks in [(2, key), (3, other), (4, key), (5, key), (6, other)]:
            book.add(OddCase(looks, Birth(number, 1, "LC", 0)))
        book.note()
        assert store.fact(facts.WAITING) == [2, 3]
        again = Docket(store, Keeper(store, lambda: 0.0), totals, confirms=True)
        for number in (3, 2):  # which looks otherwise now
            again.add_again(OddCase(other, Birth(number, 1, "LC", 0)))
        one = again.next()
        assert one is not None
        again.looked(one, None)
        assert not again.numbers
        assert store.take_alike(3) == store.take_alike(2) == [], "they waited for that look"
        assert not again.add(OddCase(other, Birth(7, 1, "LC", 0))).is_new
        again.note()
        assert store.take_alike(3) == [], "it is known, and nothing waits for it"


def test_what_an_earlier_sitting_left_waits_until_it_is_run_again(tmp_path: Path) -> None:
    key, birth = CauseKey("Dense", "a"), Birth(2, 1, "LC", 0)
    with closing(Store(tmp_path, create=True)) as store:
        store.note(facts.JOB, {})
        for number in (1, 2, 3, 4, 5):
            store.add(Row(number, 1, 1, "LC", 0, "ok", 0.0, False, 1, 0.0, 0.0, ""))
        store.alike(2, 3)
        store.alike(4, 5)
        keeper = Keeper(store, lambda: 0.0)
        book = Docket(store, keeper, Totals(store), confirms=True)
        book.expect([2, 4])
        book.add(OddCase(key, Birth(9, 1, "LC", 0)))  # of another crew, meanwhile
        book.note()
        assert store.fact(facts.WAITING) == [2, 4, 9], "whoever is killed now has lost nothing"
        one = book.next()
        assert one is not None
        told = ToldFinding("f", "it", dict.fromkeys(("kind", "triage", "title", "accused"), ""))
        found = Report(store.rows()[0], {}, (told,))
        book.looked(one, found)
        book.add_again(OddCase(key, birth))
        book.show_again(4, frozenset({"f"}))
        book.note()
        assert store.fact(facts.WAITING) == []
        assert [row.number for row in store.rows() if row.inconsistent] == [2, 3, 4, 5]
        assert [seen.count for seen in store.findings()] == [5]


def test_of_a_family_that_waits_for_good_no_case_is_kept() -> None:
    def case(detail: int, family: str = "a") -> SuspectCase:
        return SuspectCase(CauseKey(family, str(detail)), b"", ())

    novelty: Novelty[SuspectCase] = Novelty(most_vain=2)
    for number in range(5):
        novelty.add(number, case(number).key, [case(number)])
    novelty.add(9, case(9, "b").key, [case(9, "b")])
    for _ in range(3):
        one = novelty.next()
        assert one is not None
        novelty.looked(one, [], new=False)
    novelty.add(7, case(7).key, [case(7)])
    assert (novelty.next(), novelty.cases) == (None, [])
    assert novelty.waiting == 4, "but they are counted"
