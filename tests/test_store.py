"""What a campaign keeps on disk: whole or not at all, read by others, summed up rightly."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outvote.campaign.ancestry import Ancestry
from outvote.core.errors import UsageError
from outvote.store import facts
from outvote.store.queries import asked
from outvote.store.rows import Birth, Reached
from outvote.store.store import FILE, Row, Sample, Store
from outvote.store.strongest import Strongest
from outvote.store.summary import fuzz_result, lineage


def told(title: str) -> dict[str, Any]:
    """As much of a finding as the store looks into."""
    return {"title": title, "kind": "crash", "triage": "bug", "accused": "a"}


def row_of(number: int, parent: int | None = None, rule: str | None = None, **more: Any) -> Row:
    """A seed, or with a rule a mutant."""
    values: dict[str, Any] = {
        "root": 1, "seed": None if rule is None else number * 7, "outcome": "ok", "acc": 0.5,
        "joined": False, "layers": 4, "seconds": 0.1, "at": float(number), **more,
    }  # fmt: skip
    return Row(number, parent, values.pop("root"), rule, **values)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path, create=True)) as store:
        yield store


def test_rows_births_and_samples_come_back_as_they_went_in(store: Store, tmp_path: Path) -> None:
    rows = [
        row_of(1, new="lenet"),
        row_of(2, 1, "LA", joined=True, acc=None, new="Rescaling"),
        row_of(3, 2, "WS", outcome="invalid", message="no 'such' \"layer\"; DROP TABLE mutants"),
    ]
    samples = [Sample(2, "a", 0.25, 1 << 33, 0), Sample(2, "b", 0.5, 7, 2)]
    with store.transaction():
        for row in rows:
            store.add(row)
        for sample in samples:
            store.sample(sample)
    with closing(Store(tmp_path, create=False)) as again:
        assert again.rows() == rows
        assert again.rows(seeds_alone=True) == rows[:1]
        assert (again.numbers(), again.tried()) == ([1, 2, 3], (2, 1))
        births = {2: Birth(2, 1, "LA", 14), 3: Birth(3, 2, "WS", 21)}
        assert {n: again.birth(n) for n in (1, 2, 3, 4)} == {1: None, **births, 4: None}
        ancestry = Ancestry(again)
        descended = ancestry.of([Birth(4, 3, "LA", 0), Birth(5, 2, "LA", 0)])
        assert descended == (births[3], births[2])
        assert ancestry.of([Birth(4, 1, "LA", 0)]) == ()
        assert (again.root_of(1), again.root_of(3)) == (1, 1)
        assert list(again.samples()) == samples


def test_lines_come_back_and_add_up_over_time_by_target(store: Store, tmp_path: Path) -> None:
    news = [
        Reached(1, "a", 0.5, {"lib/nn.py": [3, 4], "lib/ops.py": [7]}),
        Reached(1, "b", 0.5, {"lib/nn.py": [3]}),
        Reached(4, "a", 2.0, {"lib/nn.py": [9]}),
    ]
    for new in news:
        store.reach(new)
    assert store.reached() == news
    with asked(tmp_path) as queries:
        assert queries.lines_over_time() == {"a": [[0.5, 3], [2.0, 4]], "b": [[0.5, 1]]}


def test_a_store_of_before_knows_of_no_lines_until_it_is_opened(tmp_path: Path) -> None:
    Store(tmp_path, create=True).close()
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        db.execute("DROP TABLE lines")
    with asked(tmp_path) as queries:
        assert queries.lines_over_time() == {}
    with closing(Store(tmp_path, create=False)) as opened:
        assert opened.reached() == []


def test_a_number_is_given_once(store: Store) -> None:
    store.add(row_of(1))
    with pytest.raises(sqlite3.IntegrityError):
        store.add(row_of(1))


def test_a_generation_that_fails_leaves_nothing(store: Store) -> None:
    store.note(facts.STATE, {"step": 1})

    def generation() -> None:
        with store.transaction():
            store.add(row_of(1))
            store.note(facts.STATE, {"step": 2})
            store.found("f" * 12, 1, 0.0, told("crash"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generation()
    assert store.rows() == []
    assert store.findings() == []
    assert store.fact(facts.STATE) == {"step": 1}
    with store.transaction():  # and the next one begins anew
        store.add(row_of(1))
    assert len(store.rows()) == 1


def test_another_process_reads_what_is_committed_while_we_write(
    store: Store, tmp_path: Path
) -> None:
    store.add(row_of(1))
    with closing(Store(tmp_path, create=False)) as reader:
        with store.transaction():
            store.add(row_of(2, 1, "LR"))
            assert [row.number for row in reader.rows()] == [1]
        assert [row.number for row in reader.rows()] == [1, 2]


def test_whoever_finds_a_store_finds_it_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each statement by which it is made, another looks: it is not there, or can be read."""
    looks: list[str] = []
    connect = sqlite3.connect

    def look(statement: str) -> None:
        if not (tmp_path / FILE).exists():
            looks.append("not there")
            return
        try:
            with asked(tmp_path) as questions:
                looks.append(f"{len(questions.newest(1))} mutants")
        except UsageError as error:
            looks.append(f"{statement}: {error}")

    def watched(path: str | Path, **more: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(path, **more)
        db.set_trace_callback(None if "mode=ro" in str(path) else look)
        return db

    monkeypatch.setattr(sqlite3, "connect", watched)
    Store(tmp_path, create=True).close()
    assert set(looks) == {"not there", "0 mutants"}


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5)
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner,
                                                               max_size=3),
    max_leaves=6,
))  # fmt: skip
@pytest.mark.slow
def test_a_fact_is_read_as_it_was_noted(value: Any) -> None:
    with TemporaryDirectory() as folder, closing(Store(Path(folder), create=True)) as store:
        store.note(facts.STATE, "old")
        store.note(facts.STATE, value)
        assert store.fact(facts.STATE) == value
        assert store.fact(facts.LOOKS) == facts.LOOKS.default


def test_a_finding_is_counted_and_told_anew_and_the_first_time_stays(store: Store) -> None:
    store.found("bbb", 5, 1.5, told("second"))
    store.found("aaa", 5, 1.5, told("first"))
    store.found("aaa", 9, 3.0, told("not this one"))  # known: kept as it is
    store.again("aaa", 8, 2.5)
    store.retold("aaa", {"title": "confirmed"})
    first, second = store.findings()
    assert (first.fingerprint, first.count, first.first, first.last) == ("aaa", 2, 5, 8)
    assert (first.first_at, first.last_at) == (1.5, 2.5)
    assert first.data == {"title": "confirmed"}
    assert (second.fingerprint, second.count) == ("bbb", 1)


def test_folders_that_hold_none_or_one_already_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no campaign"):
        Store(tmp_path, create=False)
    store = Store(tmp_path, create=True)
    assert not store.holds_campaign
    store.note(facts.JOB, {})
    store.close()
    store = Store(tmp_path, create=True)  # other commands may write there too
    assert store.holds_campaign
    store.close()
    (tmp_path / FILE).write_bytes(b"\x00" * 64)
    with pytest.raises(UsageError, match="is not a readable store"):
        Store(tmp_path, create=False)


# The strongest inconsistency of each input


KEY = ("a", "b")


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=5))
def test_of_each_input_the_strongest_is_kept_in_whatever_order_it_came(
    distances: list[list[float]],
) -> None:
    kept, turned = Strongest(), Strongest()
    for values in distances:
        kept.add(1, {KEY: np.array(values)}, first=False)
    for values in reversed(distances):
        turned.add(1, {KEY: np.array(values)}, first=False)
    expected = [max(column) for column in zip(*distances, strict=True)]
    assert kept.mutants[1, "a", "b"].tolist() == expected
    assert turned.state() == kept.state()


def test_the_table_counts_by_whom_and_how_much_larger() -> None:
    """Four inputs: neither, the initial model alone, both, mutants alone; threshold 0.2."""
    strongest = Strongest()
    strongest.add(1, {KEY: np.array([0.1, 0.4, 0.5, 0.1])}, first=True)
    strongest.add(1, {KEY: np.array([0.2, 0.1, 0.6, 0.9])}, first=False)
    strongest.add(1, {KEY: np.array([0.0, 0.2, 0.3, 0.3])}, first=False)
    (row,) = strongest.table(0.2)
    assert (row["root"], row["targets"]) == (1, ["a", "b"])
    assert (row["inconsistencies"], row["mutants_only"], row["initial_only"]) == (3, 1, 1)
    # Over the three that are inconsistent: 1.0 / 3 before, (0.2 + 0.6 + 0.9) / 3 after.
    assert row["initial_mean"] == pytest.approx(1 / 3)
    assert row["mutants_mean"] == pytest.approx(1.7 / 3)
    assert row["amplification"] == pytest.approx(0.7)
    assert row["largest"] == 0.9


def test_without_an_inconsistency_or_a_mutant_there_is_no_amplification() -> None:
    strongest = Strongest()
    strongest.add(1, {KEY: np.array([0.1])}, first=True)
    (row,) = strongest.table(0.2)
    assert (row["inconsistencies"], row["amplification"], row["largest"]) == (0, None, 0.0)
    strongest.add(1, {KEY: np.zeros(1)}, first=False)
    from_nothing = Strongest({(1, *KEY): np.zeros(1)}, {(1, *KEY): np.ones(1)})
    assert from_nothing.table(0.2)[0]["amplification"] is None  # nothing times what?


def test_the_strongest_survive_json() -> None:
    strongest = Strongest()
    strongest.add(3, {KEY: np.array([0.25, np.inf])}, first=True)
    strongest.add(3, {KEY: np.array([0.5, 0.125])}, first=False)
    again = Strongest.restored(json.loads(json.dumps(strongest.state())))
    assert again.state() == strongest.state()


# The summary


def finding_of(accused: str | None, triage: str = "bug", kind: str = "crash") -> dict[str, Any]:
    return {
        "fingerprint": "f", "title": "t", "accused": accused, "triage": triage, "kind": kind,
        "layer_kind": "Dense",
    }  # fmt: skip


@pytest.fixture
def campaign(store: Store) -> Store:
    """Two seeds, five mutants over 60 seconds, three findings."""
    noted: dict[str, Any] = {
        "job": {"strategy": "lemon", "targets": ["a", "b"], "mad_threshold": 0.2},
        "created": "2026-01-01T00:00:00+00:00",
        "seconds": 60.0,
        "starting": 10.0,
        "making": 2.0,
        "state": {"tallies": {"LA": [3, 2], "WS": [2, 0]}, "arms": {"lemon": [4, 1]}},
        "strongest": Strongest().state(),
        "hellos": {name: {"name": name, "versions": {}} for name in "ab"},
        "busy": {"a": 3.5},
        "restarts": {"b": 2},
        "kinds": {"Dense": 2, "ReLU": 5, "Add": 1},
        "drawable": ["ReLU", "Dense", "LSTM"],
        "values": {"Conv2D strides even": 2, "Conv2D strides odd": 1, "Dense units one": 4},
        "interrupted": False,
    }
    for key, value in noted.items():
        store.note(facts.ALL[key], value)
    for row in (
        row_of(1, new="one", at=0.0),
        row_of(2, new="two", root=2, at=0.0),
        row_of(3, 1, "LA", new="ReLU", joined=True, at=1.0),
        row_of(4, 3, "WS", at=30.5),
        row_of(5, 2, "LA", root=2, outcome="invalid", message="cannot", at=31.0),
        row_of(6, 4, "LA", new="Dense", at=59.99),
        row_of(7, 6, "WS", at=60.0),
    ):
        store.add(row)
    store.found("first", 6, 12.34567, finding_of("b"))
    store.found("seeds", 2, 1.0, finding_of(None, kind="nan"))
    store.found("noise", 6, 20.0, finding_of("a", triage="precision"))
    return store


def test_a_campaign_is_summed_up_from_the_store_alone(campaign: Store) -> None:
    result = fuzz_result(campaign)
    assert (result["tested"], result["valid"], result["invalid"]) == (5, 4, 1)
    assert result["verdict"] == "inconsistent"
    assert result["summary"] == "5 mutants at 6 a minute, 2 findings."  # in 50 seconds of breeding
    assert result["warnings"] == ["20.0% of the mutants could not be run by any target"]
    assert result["invalid_examples"] == [
        {"mutant": 5, "rule": "LA", "new": "", "message": "cannot"}
    ]
    assert [(s["name"], s["findings"], s["by_mutants"]) for s in result["seeds"]] == [
        ("one", 2, 2),
        ("two", 1, 0),
    ]
    assert result["rules"] == [
        {"rule": "LA", "tested": 3, "valid": 2, "amplified": 2, "joined": 1, "findings": 2},
        {"rule": "WS", "tested": 2, "valid": 2, "amplified": 0, "joined": 0, "findings": 0},
    ]
    assert result["arms"] == [{"strategy": "lemon", "requests": 4, "found": 1}]
    assert [(t["name"], t["seconds"], t["restarts"]) for t in result["targets"]] == [
        ("a", 3.5, 0),
        ("b", 0.0, 2),
    ]


def test_bugs_are_counted_by_target_kind_and_who_found_them(campaign: Store) -> None:
    by_mutants, by_seeds = fuzz_result(campaign)["bugs"]
    assert by_mutants == {
        "target": "b", "kind": "crash", "by_mutants": 1, "by_seeds": 0, "initial_only": 0,
        "mutants": 4.0, "seconds": 2.346,  # the fourth after two seeds, and ten seconds of starting
    }  # fmt: skip
    assert by_seeds == {
        "target": "undecided", "kind": "nan", "by_mutants": 0, "by_seeds": 1, "initial_only": 1,
        "mutants": None, "seconds": None,
    }  # fmt: skip


def test_kinds_and_values_are_counted(campaign: Store) -> None:
    result = fuzz_result(campaign)
    assert list(result["kinds"]["drawn"]) == ["ReLU", "Dense", "Add"]  # most often first
    assert (result["kinds"]["exercised"], result["kinds"]["drawable"]) == (2, 3)
    assert (result["values"]["exercised"], result["values"]["parameters"]) == (3, 2)


def test_every_mutant_is_in_the_throughput(campaign: Store) -> None:
    points = fuzz_result(campaign)["throughput"]
    assert [second for second, _ in points] == [float(i) for i in range(1, 61)]
    assert sum(rate / 60 for _, rate in points) == pytest.approx(5)  # a second each
    assert points[1][1] == points[30][1] == points[31][1] == 60.0
    assert points[-1][1] == 120.0  # also what ended on the stroke of the last second


def test_the_way_from_the_seed_to_a_mutant_is_told_in_order(campaign: Store) -> None:
    rows = {row.number: row for row in campaign.rows()}
    chain = lineage(7, rows)
    assert [step["mutant"] for step in chain] == [1, 3, 4, 6, 7]
    assert [step["rule"] for step in chain] == [None, "LA", "WS", "LA", "WS"]
    (found,) = (f for f in fuzz_result(campaign)["findings"] if f["kind"] == "nan")
    assert found["found_by"] == "seed"
    assert [step["mutant"] for step in found["lineage"]] == [2]


@pytest.mark.parametrize(
    ("interrupted", "verdict"),
    [(True, "interrupted"), (False, "consistent"), (None, "interrupted")],
)
def test_without_findings_the_end_decides_the_verdict(
    store: Store, interrupted: bool | None, verdict: str
) -> None:
    """A campaign that was killed has noted no end."""
    store.note(facts.JOB, {"strategy": "random", "targets": [], "mad_threshold": 0.2})
    store.note(facts.STATE, {"tallies": {}})
    store.note(facts.STRONGEST, Strongest().state())
    if interrupted is not None:
        store.note(facts.INTERRUPTED, interrupted)
    result = fuzz_result(store)
    assert result["verdict"] == verdict
    assert result["warnings"] == ["no mutant was run"]
    assert result["summary"] == "0 mutants at 0 a minute, nothing found."


class _Watched:
    """A connection that notices two threads inside it."""

    def __init__(self, db: Any) -> None:
        self._db, self._inside, self.met = db, 0, False

    def execute(self, *arguments: Any) -> Any:
        self._inside += 1
        time.sleep(0.001)
        self.met |= self._inside > 1
        found = self._db.execute(*arguments)
        self._inside -= 1
        return found

    def close(self) -> None:
        self._db.close()


def test_threads_that_note_and_ask_do_so_one_after_the_other(tmp_path: Path) -> None:
    """A prepared statement in the hands of two threads ended a campaign."""
    with closing(Store(tmp_path, create=True)) as store:
        watched = _Watched(store._db)
        store._db = watched  # type: ignore[assignment]

        def work(number: int) -> None:
            for step in range(10):
                store.note(facts.POSITIONS, {"a": [step, number, "x"]})
                store.fact(facts.POSITIONS)

        with ThreadPoolExecutor(3) as threads:
            for done in [threads.submit(work, number) for number in range(3)]:
                done.result()
        assert not watched.met
