"""Which folder takes a campaign: a start that failed is in nobody's way, a campaign that ran is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conftest import fake
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.cli import main
from outvote.commands.fuzz.run import require_rival, resume, start
from outvote.commands.record import broken_is_told
from outvote.core.errors import UsageError
from outvote.core.events import Broken, Started, TargetUp
from outvote.store import facts
from outvote.store.folder import (
    comparison_of,
    holds_campaign,
    last_run,
    stored_result,
    takes_campaign,
)
from outvote.store.store import FILE, Row, Store
from outvote.store.strongest import Strongest

JOB = {"strategy": "lemon", "targets": ["a"], "mad_threshold": 0.2}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path, create=True)) as store:
        yield store


def begun(store: Store) -> None:
    store.note(facts.JOB, JOB)
    store.begin(Started("fuzz", None))


def job_of(model: Path) -> FuzzJob:
    seeds, targets = (SeedFile("seed", model, None),), (fake("a"), fake("b"))
    return FuzzJob(seeds, targets, budget=Budget(mutants=4), inputs=4, rules=("LC", "LR"))


# When a new campaign may begin


def test_an_empty_folder_takes_one(store: Store) -> None:
    assert takes_campaign(store)


def test_what_other_commands_left_does_not_stand_in_the_way(store: Store) -> None:
    store.begin(Started("check", None))
    assert takes_campaign(store)


@pytest.mark.parametrize("reason", ["", "UsageError: no target can run the seed"])
def test_a_start_that_broke_leaves_the_folder_free(store: Store, reason: str) -> None:
    begun(store)
    store.tell(Broken(reason))
    assert takes_campaign(store)


def test_one_that_says_nothing_of_its_end_may_be_running(store: Store) -> None:
    begun(store)
    store.tell(TargetUp("a", {}, 0.1))
    assert not takes_campaign(store)


def test_one_whose_seeds_have_run_stays_also_where_it_broke(store: Store) -> None:
    begun(store)
    store.note(facts.STATE, {"tallies": {}})
    store.tell(Broken("disk full"))
    assert not takes_campaign(store)


def test_one_that_was_resumed_after_a_broken_start_may_be_running(store: Store) -> None:
    begun(store)
    store.tell(Broken(""))
    store.begin(Started("fuzz", None))
    assert not takes_campaign(store)


@pytest.mark.parametrize(
    ("error", "reason"), [(KeyboardInterrupt(), ""), (ValueError("x"), "ValueError: x")]
)
def test_whatever_ends_a_start_is_told_and_passed_on(
    store: Store, error: BaseException, reason: str
) -> None:
    begun(store)

    def failing() -> None:
        with broken_is_told(store):
            raise error

    with pytest.raises(type(error)):
        failing()
    assert store.events()[-1].event == Broken(reason)
    assert takes_campaign(store)


# Campaigns that fail at their start


def spoilt(model: Path) -> str:
    """Make a layer of the seed one that no target has; returns the text as it was."""
    whole = model.read_text()
    broken = json.loads(whole)
    broken["layers"][0]["kind"] = "NoSuchLayer"
    model.write_text(json.dumps(broken))
    return whole


def test_after_a_failed_start_the_same_command_works(fake_model: Path, tmp_path: Path) -> None:
    """A seed that nobody can run, mended by its user."""
    out, whole = tmp_path / "out", spoilt(fake_model)
    with pytest.raises(UsageError, match=r"reading .*model\.json failed in a: "):
        start(job_of(fake_model), out)
    with closing(Store(out, create=False)) as store:
        assert store.holds_campaign, "so that --resume can go on with it, too"
        assert store.rows() == []
    fake_model.write_text(whole)
    result = start(job_of(fake_model), out)
    assert (result["tested"], result["interrupted"]) == (4, False)
    with closing(Store(out, create=False)) as store:
        kinds = [type(told.event).__name__ for told in store.events() if told.run == 1]
        assert kinds[-1] == "Broken", "what happened before is still told"
    with pytest.raises(UsageError, match="holds a campaign already; go on with --resume"):
        start(job_of(fake_model), out)


def test_a_failed_start_can_be_resumed_instead(fake_model: Path, tmp_path: Path) -> None:
    out, whole = tmp_path / "out", spoilt(fake_model)
    with pytest.raises(UsageError):
        start(job_of(fake_model), out)
    fake_model.write_text(whole)
    assert resume(out, {name: fake(name) for name in "ab"})["tested"] == 4


def test_a_bad_request_leaves_no_file_behind(
    fake_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["fuzz", str(fake_model), "--targets", "fake,numpy", "--out", "out"]
    for wrong in (["--rules", "XX"], ["--strategy", "best"], ["--data", "missing.npz"]):
        assert main([*arguments, *wrong]) == 2
        assert not (tmp_path / "out" / FILE).exists(), wrong
    assert main([*arguments, "--targets", "fake"]) == 2
    assert not (tmp_path / "out").exists()


def test_the_folder_of_a_rival_is_free_by_the_same_rule(tmp_path: Path, fake_model: Path) -> None:
    job, inside = job_of(fake_model), tmp_path / "random"
    require_rival(job, "random", tmp_path)
    inside.mkdir()
    with closing(Store(inside, create=True)) as store:
        begun(store)
        store.tell(Broken("it failed"))
        require_rival(job, "random", tmp_path)
        store.note(facts.STATE, {"tallies": {}})
    with pytest.raises(UsageError, match=r"random holds a campaign already; choose another --out"):
        require_rival(job, "random", tmp_path)


# What is read of a folder


def test_a_folder_without_a_store_holds_none(tmp_path: Path) -> None:
    assert not holds_campaign(tmp_path)
    assert not (tmp_path / FILE).exists(), "asking makes none"


def test_only_campaigns_that_have_run_are_compared(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no campaign; only campaigns are compared"):
        stored_result(tmp_path)
    begun(store)
    with pytest.raises(UsageError, match="was stopped before its seeds had run"):
        stored_result(tmp_path)
    with pytest.raises(UsageError, match="was named twice; a campaign is no repetition of itself"):
        comparison_of([tmp_path, tmp_path / "." / "x" / ".."])


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ([], "it has not ended yet"),
        ([Broken("")], "it was stopped"),
        ([Broken("ValueError: first"), Broken("OSError: last")], "OSError: last"),
    ],
)
def test_without_a_result_the_reason_is_told(
    store: Store, tmp_path: Path, told: list[Any], why: str
) -> None:
    begun(store)
    for event in told:
        store.tell(event)
    with pytest.raises(UsageError) as refused:
        last_run(tmp_path)
    assert str(refused.value) == f"no command in {tmp_path} has come to a result: {why}"


def test_a_campaign_is_reported_while_it_runs(store: Store, tmp_path: Path) -> None:
    begun(store)
    store.note(facts.STATE, {"tallies": {}})
    store.note(facts.HELLOS, {"a": {"name": "a"}})
    store.note(facts.STRONGEST, Strongest().state())
    store.add(Row(1, None, 1, None, None, "ok", 0.5, True, 3, 0.1, 0.2, new="seed"))
    found = last_run(tmp_path)
    assert found.started.command == "fuzz"
    assert found.result["verdict"] == "interrupted"
    assert [seed["name"] for seed in found.result["seeds"]] == ["seed"]
