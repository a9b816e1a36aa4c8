"""The commands as functions, on fake targets: what they take, return, show and tell."""

from __future__ import annotations

import html
import json
import typing
from pathlib import Path

import numpy as np
import pytest

import outvote
from outvote import api
from outvote.api import options
from outvote.api.asked import actions_of
from outvote.core.errors import UsageError
from outvote.core.events import FindingMet, Finished, MutantsTested, Started

# What stands in the signature of a function, and not among its keywords.
POSITIONAL = {
    "check": {"model", "data"},
    "fuzz": {"seeds", "data"},
    "localize": {"case", "data"},
    "nan": {"model", "data"},
    "bisect": {"case", "data", "first", "last"},
    "explore": {"models", "data"},
    "coverage": {"model", "data", "train"},
    "pollution": {"clean", "polluted", "data"},
    "targets": {"targets", "environments", "remove"},  # the latter two are the cache's
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three fakes, of which one lies in the layer d2."""
    tables = [f'[targets.{name}]\nextends = "fake"\nlibrary = "{name}"' for name in "abc"]
    tables[2] += '\nenv = {OUTVOTE_FAKE = "lie:d2"}'
    (tmp_path / "outvote.toml").write_text("\n".join(tables))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def lie(fake_model: Path) -> api.Result:
    return api.check(fake_model, inputs(), targets=["a", "b", "c"], confirm=0, minimise=0)


def inputs(count: int = 4) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(count, 4)).astype("float32")


@pytest.mark.parametrize("command", POSITIONAL)
def test_a_function_has_every_option_of_its_command(command: str) -> None:
    declared = typing.get_type_hints(getattr(options, f"{command.title()}Options"))
    assert declared.keys() | POSITIONAL[command] == actions_of(command).keys()


def test_the_verbs_are_at_hand_without_the_folders_of_the_same_name() -> None:
    assert outvote.check is api.check
    assert outvote.explore_models is api.explore
    assert outvote.list_targets is api.targets
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        _ = outvote.chek


def test_a_result_says_what_was_found(lie: api.Result) -> None:
    assert (lie.verdict, lie.consistent, lie.passed) == ("inconsistent", False, False)
    (finding,) = lie.findings
    assert (finding["accused"], finding["layer"]) == ("c", "d2")
    assert lie.data["data"]["source"] == "arrays"
    assert repr(lie) == f"<check: inconsistent. {lie.summary}>"


def test_a_result_prints_as_in_the_terminal(lie: api.Result) -> None:
    text = str(lie)
    assert "a / c" in text
    assert text.splitlines()[-1] == f"INCONSISTENT  {lie.summary}"
    assert "\x1b" not in text


@pytest.mark.slow
def test_a_result_is_plain_data_and_is_saved(lie: api.Result, folder: Path) -> None:
    assert json.loads(json.dumps(lie.to_dict())) == lie.to_dict()
    lie.to_dict()["findings"].clear()
    assert lie.findings
    saved = lie.save(folder / "new" / "place")
    assert json.loads((saved / "result.json").read_text())["summary"] == lie.summary
    assert (saved / "report.html").exists()


@pytest.mark.slow
def test_evidence_goes_along_with_what_is_saved(fake_model: Path, folder: Path) -> None:
    found = api.check(fake_model, targets=["a", "b", "c"], confirm=0, out=folder / "first")
    (finding,) = found.findings
    assert (found.save(folder / "second") / "findings" / finding["fingerprint"]).is_dir()


def test_a_notebook_shows_the_report_in_a_frame_that_reaches_nothing(lie: api.Result) -> None:
    shown = lie._repr_html_()
    page = html.unescape(shown.partition('srcdoc="')[2].partition('" sandbox')[0])
    assert page.startswith("<!doctype html>")
    assert lie.summary.partition("'")[0] in page
    assert 'sandbox="allow-scripts"' in shown


def test_values_are_taken_as_python_has_them_or_as_one_types_them(fake_model: Path) -> None:
    assert api.check(str(fake_model), targets=["a", "b"], count=2, fail_on="never").passed
    with pytest.raises(UsageError, match="count: expected a whole number from 1, received '0'"):
        api.check(fake_model, count=0)
    with pytest.raises(UsageError, match=r"fail_on: choose from bug, .* received 'all'"):
        api.check(fake_model, fail_on="all")
    with pytest.raises(UsageError, match="there is no setting 'target' of check"):
        api.check(fake_model, target="a")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="y was given without x"):
        api.check(fake_model, y=inputs())
    with pytest.raises(UsageError, match="expected a Keras model or the path"):
        api.check(3)


def test_progress_goes_to_standard_error_on_demand(
    fake_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.check(fake_model, targets=["a", "b"], count=2, progress=True)
    out, err = capsys.readouterr()
    assert "Reading the model" in err
    assert out == ""


@pytest.mark.slow
def test_a_campaign_returns_its_result(fake_model: Path) -> None:
    found = api.fuzz(fake_model, targets=["a", "b", "c"], budget=8, minimise=0, confirm=0)
    assert found.command == "fuzz"
    assert found.folder is None
    assert {f["accused"] for f in found.findings} == {"c"}
    assert "DONE" in str(found)


@pytest.mark.slow
def test_events_come_while_a_campaign_runs(fake_model: Path, folder: Path) -> None:
    given: options.FuzzOptions = {"minimise": 0, "confirm": 0, "out": folder / "events"}
    given |= {"budget": "1h", "targets": ["a", "b", "c"]}
    with api.campaign(fake_model, **given) as running:
        events = []
        for event in running:
            events.append(event)
            if isinstance(event, MutantsTested) and event.tested:
                running.stop()
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    assert any(isinstance(event, FindingMet) for event in events)
    assert running.result().data["interrupted"]
    with api.campaign(resume=folder / "events", budget=1, config="outvote.toml") as again:
        more = list(again)
    assert isinstance(more[0], Started)
    assert not again.result().data["interrupted"]
    assert list(api.follow(folder / "events", wait=False)) == more


def test_a_campaign_that_cannot_begin_says_so_where_its_result_is_wanted(
    fake_model: Path,
) -> None:
    with api.campaign(fake_model, targets=["a"], budget=1) as running, pytest.raises(UsageError):
        list(running)
    with pytest.raises(UsageError, match="a comparison needs two targets"):
        running.result()
    with pytest.raises(UsageError, match="no folder nowhere to follow"):
        api.follow("nowhere")


def test_targets_are_listed_with_their_health() -> None:
    table = api.targets(["a", "c"])
    assert table.working == ["a", "c"]
    assert table.to_dict()["a"]["state"] == "ok"
    assert [row.name for row in table] == ["a", "c"]
    assert str(table).startswith("a: ok numpy")
    assert "<td>a</td><td>ok</td>" in table._repr_html_()


@pytest.mark.slow
def test_causes_are_localised_and_nan_is_hunted(fake_model: Path) -> None:
    causes = api.localize(fake_model, inputs(), targets=["a", "c"])
    (pair,) = causes.data["pairs"]
    assert pair["suspects"][0]["layer"] == "d2"
    assert "a / c" in str(causes)
    hunted = api.nan(fake_model, inputs(), target="a", budget="0.2s")
    assert hunted.command == "nan"
    assert hunted.data["evaluations"] > 0
    assert hunted.data["data"]["source"] == "arrays"
    assert "<iframe" in hunted._repr_html_()


def test_a_bisection_needs_to_know_the_target(fake_model: Path) -> None:
    with pytest.raises(UsageError, match="a model says not which target is in question"):
        api.bisect(fake_model, "3.8", "3.9")
