"""The store as a whole: what is told comes back in order, from any reader, after any death."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import fake
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.core.errors import UsageError
from outvote.core.events import (
    Broken,
    CaseRun,
    Event,
    FindingMet,
    Finished,
    MutantsTested,
    StageBegun,
    StageEnded,
    Started,
    TargetDown,
    TargetUp,
)
from outvote.run.process import Limits
from outvote.search.genetic import GeneticSettings
from outvote.store import facts
from outvote.store.counts import audee_counts, lemon_counts
from outvote.store.folder import last_run
from outvote.store.store import FILE, Row, Sample, Store

TEXT = st.text(max_size=6)
COUNT = st.integers(0, 2**31)
SECONDS = st.floats(0, 1e6)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(TargetUp, TEXT, st.dictionaries(TEXT, TEXT, max_size=2), SECONDS),
    st.builds(TargetDown, TEXT, TEXT),
    st.builds(StageBegun, TEXT, st.lists(TEXT, max_size=2).map(tuple)),
    st.builds(StageEnded, TEXT, SECONDS, st.booleans()),
    st.builds(CaseRun, TEXT, TEXT, SECONDS, TEXT, st.none() | TEXT),
    st.builds(MutantsTested, COUNT, COUNT, COUNT),
    st.builds(FindingMet, TEXT, TEXT, TEXT, TEXT, st.none() | TEXT),
    st.builds(Broken, TEXT),
)
ROWS = st.builds(
    Row,
    number=st.just(0),
    parent=st.none() | COUNT,
    root=COUNT,
    rule=st.none() | TEXT,
    seed=st.none() | COUNT,
    outcome=st.sampled_from(["ok", "some", "invalid"]),
    acc=st.none() | SECONDS,
    joined=st.booleans(),
    layers=COUNT,
    seconds=SECONDS,
    at=SECONDS,
    message=TEXT,
    new=TEXT,
    network=TEXT,
    inconsistent=st.booleans(),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path, create=True)) as store:
        yield store


@settings(max_examples=20)
@given(st.lists(st.lists(EVENTS, max_size=4), min_size=1, max_size=3))
@pytest.mark.slow
def test_events_come_back_by_run_and_in_order(runs: list[list[Event]]) -> None:
    with TemporaryDirectory() as folder, closing(Store(Path(folder), create=True)) as store:
        for number, events in enumerate(runs, 1):
            store.begin(Started(f"command {number}", None))
            for event in events:
                store.tell(event)
        with closing(Store(Path(folder), create=False)) as reader:
            for number, events in enumerate(runs, 1):
                told = [one.event for one in reader.events(number)]
                assert told == [Started(f"command {number}", None), *events]
            every = reader.events()
        assert [one.run for one in every] == sorted(one.run for one in every)
        assert [one.at for one in every] == sorted(one.at for one in every)


@settings(max_examples=20)
@given(st.lists(ROWS, max_size=5))
@pytest.mark.slow
def test_rows_come_back_as_they_went_in(rows: list[Row]) -> None:
    numbered = [replace(row, number=place) for place, row in enumerate(rows)]
    with TemporaryDirectory() as folder, closing(Store(Path(folder), create=True)) as store:
        with store.transaction():
            for row in reversed(numbered):
                store.add(row)
        assert store.rows() == numbered, "by number, whatever the order they came in"
        born = {row.number for row in numbered if store.birth(row.number) is not None}
        assert born == {row.number for row in numbered if row.rule is not None}


def test_of_all_runs_only_the_last_that_finished_keeps_its_result(
    store: Store, tmp_path: Path
) -> None:
    """A folder that is used every night must not grow by a result each time."""
    for number in range(3):
        store.begin(Started("check", None))
        store.tell(Finished("consistent", f"run {number}", {"big": "x" * 1000, "n": number}))
    store.begin(Started("check", None))
    store.tell(Broken("KeyError: 'x'"))
    ended = [told.event for told in store.events() if isinstance(told.event, Finished)]
    assert [event.summary for event in ended] == ["run 0", "run 1", "run 2"]
    assert [event.result and event.result["n"] for event in ended] == [None, None, 2]
    assert last_run(tmp_path).result["n"] == 2, "what broke later does not hide it"


@pytest.mark.parametrize("where", ["between", "inside"])
def test_a_writer_that_is_killed_leaves_what_it_had_committed(
    store: Store, tmp_path: Path, where: str
) -> None:
    """The files as they lie on the disk at that moment, opened by somebody else."""
    copied = tmp_path / "copied"
    copied.mkdir()

    def killed() -> None:
        for path in tmp_path.glob(f"{FILE}*"):
            if not path.name.endswith("-shm"):
                shutil.copy(path, copied)

    row = Row(1, None, 1, None, None, "ok", 0.5, True, 3, 0.1, 0.2)
    with store.transaction():
        store.add(row)
        store.sample(Sample(1, "a", 0.5, 7, 0))
        store.note(facts.STATE, {"step": 1})
    if where == "between":
        killed()
    with store.transaction():
        store.add(replace(row, number=2))
        store.sample(Sample(2, "a", 0.5, 7, 0))
        store.note(facts.STATE, {"step": 2})
        if where == "inside":
            killed()
    with closing(Store(copied, create=True)) as found:
        assert found.rows() == [row]
        assert len(found.samples()) == 1
        assert found.fact(facts.STATE) == {"step": 1}
        with found.transaction():
            found.add(replace(row, number=2))
        assert len(found.rows()) == 2, "and it goes on from there"


def test_threads_tell_without_losing_a_word(store: Store) -> None:
    """Targets come up side by side."""
    store.begin(Started("check", None))

    def tell(name: int) -> None:
        for number in range(20):
            store.tell(CaseRun(f"t{name}", "ok", float(number)))

    threads = [threading.Thread(target=tell, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [one.event for one in store.events() if isinstance(one.event, CaseRun)]
    for name in range(4):
        assert [e.seconds for e in told if e.target == f"t{name}"] == [float(n) for n in range(20)]


def test_numbers_that_json_lacks_are_not_told(store: Store) -> None:
    store.begin(Started("check", None))
    with pytest.raises(ValueError, match="JSON"):
        store.tell(Finished("consistent", "", {"x": float("nan")}))
    assert len(store.events()) == 1


def test_opening_again_changes_nothing(store: Store, tmp_path: Path) -> None:
    store.note(facts.JOB, {"a": 1})
    before = (tmp_path / FILE).read_bytes()
    for create in (True, False, True):
        with closing(Store(tmp_path, create=create)) as again:
            assert again.fact(facts.JOB) == {"a": 1}
    assert (tmp_path / FILE).read_bytes() == before


def test_a_default_is_each_reader_s_own(store: Store) -> None:
    store.fact(facts.KINDS)["Dense"] = 1
    store.fact(facts.DRAWABLE).append("Dense")
    assert store.fact(facts.KINDS) == {}
    assert store.fact(facts.DRAWABLE) == []


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("UPDATE events SET kind = 'NoSuchEvent'", "'NoSuchEvent' that cannot be read"),
        ("UPDATE events SET data = '[]'", "that cannot be read"),
        ("UPDATE events SET data = 'no json'", "that cannot be read"),
        ('UPDATE events SET data = \'{"command": 3, "x": 1}\'', "that cannot be read"),
    ],
)
def test_a_store_that_was_changed_by_hand_is_said(
    store: Store, tmp_path: Path, statement: str, word: str
) -> None:
    store.begin(Started("check", None))
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        db.execute(statement)
        db.commit()
    with pytest.raises(UsageError, match=word):
        store.events()


# The papers' counts, from rows alone


@settings(max_examples=20)
@given(st.lists(ROWS, max_size=6))
def test_inconsistent_networks_are_among_those_that_ran(rows: list[Row]) -> None:
    found = audee_counts(rows)
    assert 0 <= found["inconsistencies"] <= found["networks"] <= len(rows)
    assert audee_counts([*rows, *rows]) == found, "the same network is counted once"
    assert audee_counts(rows[::-1]) == found


def test_a_bug_is_a_target_and_a_kind_of_layer() -> None:
    rows = {
        n: Row(n, None, 1, None if n < 3 else "LA", None, "ok", None, True, 1, 0.0, 0.0)
        for n in range(1, 9)
    }

    def found(one: str, accused: str | None, kind: str, first: int, **more: Any) -> dict[str, Any]:
        told = {"triage": "bug", "last": first, "first_at": float(first), **more}
        return {"fingerprint": one, "accused": accused, "layer_kind": kind, "first": first, **told}

    findings = [
        found("a", "jax", "Dense", 5),
        found("b", "jax", "Dense", 2),  # the same bug, by a seed
        found("c", "jax", "Conv2D", 7),
        found("d", None, "Dense", 6),  # nobody is accused: no bug of LEMON's
        found("e", "torch", "Dense", 1, last=1),
        found("f", "torch", "ReLU", 8, triage="precision"),
    ]
    counted = lemon_counts(findings, rows, tested=12, seconds=6.0)
    assert [(b["target"], b["layer_kind"], b["findings"]) for b in counted["bugs"]] == [
        ("jax", "Dense", ["a", "b"]),
        ("jax", "Conv2D", ["c"]),
        ("torch", "Dense", ["e"]),
    ]
    assert (counted["mutants_only"], counted["initial_only"]) == (1, 1)
    assert (counted["mutants_per_bug"], counted["seconds_per_bug"]) == (4.0, 2.0)
    assert counted["bugs"][0]["first"] == 2
    empty = lemon_counts([], rows, 12, 6.0)
    assert (empty["mutants_per_bug"], empty["seconds_per_bug"]) == (None, None)


# The job of a campaign


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"budget": Budget(seconds=60.0, coverage=0.8), "strategy": "audee", "seed": 7},
        {"inputs": 0, "rules": ("LA", "LC"), "breed_known": True, "keep_outputs": False},
        {"jobs": 2, "limits": Limits(silence_seconds=5.0), "memory_limit": 1 << 30},
        {"search": "gradient", "genetic": GeneticSettings(8, 2, 0.1, 0.2, 3), "confirm": 0},
        {"minimise": 0.0, "mad_threshold": 0.1, "generation": 3, "line_coverage": False},
    ],
)
def test_a_job_is_restored_as_it_was_stored(changes: dict[str, Any], tmp_path: Path) -> None:
    targets = (fake("a"), fake("b"))
    seeds = (SeedFile("s", tmp_path / "m.keras", tmp_path / "d.npz"), SeedFile("t", tmp_path, None))
    job = FuzzJob(seeds, targets).but(**changes)
    stored = json.loads(json.dumps(job.stored()))
    assert FuzzJob.restored(stored, {t.name: t for t in targets}) == job


@pytest.mark.parametrize(
    ("budget", "spent"),
    [
        (Budget(mutants=10), 0.5),
        (Budget(seconds=100.0), 0.2),
        (Budget(coverage=0.5), 0.8),
        (Budget(mutants=10, seconds=100.0, coverage=0.5), 0.8),
        (Budget(mutants=0), 1.0),
        (Budget(), 0.0),
    ],
)
def test_a_budget_ends_with_whatever_is_first(budget: Budget, spent: float) -> None:
    assert budget.spent(mutants=5, seconds=20.0, coverage=0.4) == spent
