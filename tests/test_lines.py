"""Which lines of a library a worker tells, and what a campaign makes of it."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from conftest import fake
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.lines import Lines, yielded
from outvote.commands.fuzz.run import resume, start
from outvote.core.protocol import LinesReached
from outvote.store import facts
from outvote.store.store import Store
from outvote.worker.lines import LineWatch

LIBRARY = '''"""A library."""

from functools import cache, wraps

SIDES = [side for side in "ab"]


def logged(function):
    @wraps(function)
    def inner(*args):
        return function(*args)
    return inner


class Base:
    def sign(self):
        return 1


class Layer(Base):
    def sign(self):
        """What super() says, turned."""
        return -super().sign()

    @logged
    def call(self, x):
        total = 0
        for one in range(x):
            if one == 2:
                total += self.sign()
                break
        else:
            total = 9
        try:
            return {0: "zero"}[total]
        except KeyError:
            pass
        return total


def counted():
    count = 0
    def more():
        nonlocal count
        count += 1
        return count
    return more


def broken(x):
    y = x
    raise ValueError(y)


more = counted()
'''


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    folder = tmp_path / "planted_library"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "nn.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("planted_library.nn")
    for name in ("planted_library", "planted_library.nn"):
        sys.modules.pop(name)


def line_of(text: str) -> int:
    (found,) = [n for n, line in enumerate(LIBRARY.split("\n"), 1) if line.strip() == text]
    return found


def told(watch: LineWatch) -> set[int]:
    files = watch.reached().files
    assert set(files) <= {"planted_library/nn.py"}
    return {line for lines in files.values() for line in lines}


def test_a_line_is_told_once_and_only_if_it_ran_since_it_began(
    library: ModuleType, tmp_path: Path
) -> None:
    layer = library.Layer()  # made before there are marks
    watch = LineWatch(["planted_library"], tmp_path)
    layer.call(1)
    watch.begin()
    assert layer.call(0) == 9
    first = told(watch)
    assert line_of("total = 9") in first
    assert line_of("return function(*args)") in first, "code inside a decorator"
    assert line_of("total += self.sign()") not in first
    watch.begin()
    layer.call(0)
    assert told(watch) == set()
    watch.begin()
    assert layer.call(5) == -1
    again = told(watch)
    assert {line_of("total += self.sign()"), line_of("return -super().sign()")} <= again
    assert not first & again


def test_what_is_marked_computes_what_it_did(library: ModuleType, tmp_path: Path) -> None:
    assert library.more() == 1
    watch = LineWatch(["planted_library"], tmp_path)
    watch.begin()
    assert [library.more(), library.counted()()] == [2, 1], "functions with cells"
    assert line_of("count += 1") in told(watch)
    assert library.Layer.sign.__doc__ == "What super() says, turned."


def test_an_error_names_the_line_that_raised_it(library: ModuleType, tmp_path: Path) -> None:
    LineWatch(["planted_library"], tmp_path)
    with pytest.raises(ValueError, match="7") as raised:
        library.broken(7)
    last = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert (last.name, last.lineno, last.line) == (
        "broken",
        line_of("raise ValueError(y)"),
        last.line,
    )
    assert last.line == "raise ValueError(y)"


def test_a_second_worker_takes_what_the_first_has_compiled(
    library: ModuleType, tmp_path: Path
) -> None:
    one = LineWatch(["planted_library"], tmp_path)
    (kept,) = tmp_path.glob("lines-*")
    stamp = kept.stat().st_mtime_ns
    other = LineWatch(["planted_library"], tmp_path)
    assert kept.stat().st_mtime_ns == stamp
    other.begin()
    library.Layer().call(0)
    found = other.reached()
    assert found.of == one.reached().of
    assert line_of("total = 9") in found.files["planted_library/nn.py"]


def test_a_campaign_counts_what_is_new_to_it_whoever_told_it(tmp_path: Path) -> None:
    def lines(**files: tuple[int, ...]) -> LinesReached:
        return LinesReached(files, 100)

    with closing(Store(tmp_path, create=True)) as store:
        seen = Lines(store)
        first = seen.new_in({"a": lines(nn=(1, 2)), "b": lines(nn=(2, 3))})
        assert yielded(first) == 3, "one line on two targets counts once"
        seen.keep(1, 0.5, first)
        fresh = seen.new_in({"a": lines(nn=(1, 2), ops=(2,)), "b": lines(nn=(2,))})
        assert fresh["a"].files == {"ops": (2,)}
        assert fresh["b"].files == {}
        seen.keep(2, 0.75, fresh)
        assert store.fact(facts.LINES) == {"a": 100, "b": 100}
    with closing(Store(tmp_path, create=False)) as store:
        assert [(row.number, row.target) for row in store.reached()] == [
            (1, "a"),
            (1, "b"),
            (2, "a"),
        ]
        again = Lines(store)
        assert yielded(again.new_in({"a": lines(nn=(2,), ops=(2, 7))})) == 1


TARGETS = (fake("a"), fake("b"))


@pytest.fixture
def job(fake_model: Path) -> FuzzJob:
    seeds = (SeedFile("seed", fake_model, None),)
    budget = Budget(mutants=32)
    rules = ("FL", "AGAIN")  # layers on tensors of their own, as others are not varied
    return FuzzJob(seeds, TARGETS, "layers", budget, inputs=2, minimise=0.0, confirm=0, rules=rules)


def reached(folder: Path) -> dict[str, list[tuple[int, Any]]]:
    """Who was the first to reach what, by target: they answer in an order of their own."""
    with closing(Store(folder, create=False)) as store:
        rows = store.reached()
    return {t.name: [(r.number, r.files) for r in rows if r.target == t.name] for t in TARGETS}


def counted_by_rule(result: dict[str, Any]) -> dict[str, int]:
    return {row["rule"]: row["tested"] for row in result["rules"]}


@pytest.mark.slow
def test_what_reached_new_lines_is_varied_and_the_result_says_how_many(
    job: FuzzJob, tmp_path: Path
) -> None:
    result = start(job, tmp_path / "with")
    rows = reached(tmp_path / "with")
    assert counted_by_rule(result)["AGAIN"] > 0
    for name, lines in result["lines"].items():
        places = [(f, line) for _, files in rows[name] for f in files for line in files[f]]
        assert len(places) == len(set(places)) == lines["reached"]
        assert 0 < lines["reached"] < lines["of"]
    assert {row[0] for row in rows["a"]} > {1}, "the seed and some mutants"

    without = start(job.but(line_coverage=False), tmp_path / "without")
    assert without["lines"] == {}
    assert counted_by_rule(without)["AGAIN"] == 0


@pytest.mark.slow
def test_fresh_workers_and_a_pause_change_nothing(job: FuzzJob, tmp_path: Path) -> None:
    whole = start(job, tmp_path / "whole")
    recycled = start(job.but(memory_limit=1 << 20), tmp_path / "recycled")
    assert recycled["time"]["recycled"] >= 3
    start(job.but(budget=Budget(mutants=16)), tmp_path / "half")
    known = {target.name: target for target in TARGETS}
    rest = resume(tmp_path / "half", known, changes={"budget": job.budget})
    for name, other in (("recycled", recycled), ("half", rest)):
        assert reached(tmp_path / name) == reached(tmp_path / "whole")
        assert (counted_by_rule(other), other["lines"]) == (counted_by_rule(whole), whole["lines"])
