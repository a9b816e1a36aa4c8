"""The result of every command has the form that report/schema/result.schema.json publishes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest

import report_example
import report_explore
from conftest import fake
from every_command import RESULTS, coverage, explore, pollution
from outvote.cli import main
from outvote.commands import room
from outvote.commands.explore import between
from outvote.commands.explore.job import BetweenTargets
from outvote.commands.terminal import Terminal
from outvote.core.case import Data
from outvote.core.result import SCHEMA
from outvote.explore.expedition import Expedition
from outvote.explore.job import ExploreJob
from outvote.findings.gate import STRICT
from outvote.report import names as formats
from outvote.report import rendered
from outvote.run.local import LocalPool
from result_form import faults, is_valid, nulls_in_the_way, require_form, schema
from test_bisect import Index, bisected

TOML = "".join(
    f'[targets.{name}]\nextends = "fake"\nlibrary = "{name}"\n{misdeed}'
    for name, misdeed in (
        ("a", ""),
        ("b", ""),
        ("liar", 'env = {OUTVOTE_FAKE = "lie:d2"}\n'),
        ("odd", 'env = {OUTVOTE_FAKE = "lie:Rescaling"}\n'),
        ("nan", 'env = {OUTVOTE_FAKE = "nan:d2"}\n'),
        ("fails", 'env = {OUTVOTE_FAKE = "error:d2"}\n'),
    )
)
Written = Callable[..., dict[str, Any]]


@pytest.fixture
def written(
    tmp_path: Path, fake_model: Path, fake_data: Path, monkeypatch: pytest.MonkeyPatch
) -> Written:
    """Run a command on fake targets; what its result.json holds."""
    (tmp_path / "outvote.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 1, out: str = "out") -> dict[str, Any]:
        assert main([*arguments, "--out", out]) == code
        read: dict[str, Any] = json.loads((tmp_path / out / "result.json").read_text())
        return read

    return run


CHECK = ("check", "model.json", "--data", "data.npz", "--quiet", "--targets")
FUZZ = ("fuzz", "model.json", "--data", "data.npz", "--quiet", "--inputs", "8", "--targets")
ALIKE = ("--seed", "1", "--compare", "random", "--minimise", "0")  # what it draws, odd gets wrong


@pytest.mark.slow
def test_the_schema_is_one_and_its_number_is_the_programs() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["$defs"]["head"]["properties"]["schema"] == {"const": SCHEMA}
    assert schema()["$id"].endswith(f":{SCHEMA}")


@pytest.mark.parametrize(
    ("targets", "code"), [("a,b", 0), ("a,b,liar", 1), ("a,b,nan", 1), ("a,b,fails", 1)]
)
@pytest.mark.slow
def test_check(written: Written, targets: str, code: int) -> None:
    small = () if "liar" in targets else ("--minimise", "0")
    result = written(*CHECK, targets, *small, code=code)
    assert bool(result["findings"]) is bool(code)
    require_form(result)


@pytest.mark.slow
def test_fuzz_its_rival_and_the_comparison(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outvote.campaign.campaign._CANARY", 8)  # samples in a short campaign
    result = written(*FUZZ, "a,b,odd", "--budget", "16", *ALIKE)
    assert result["findings"]
    assert result["samples"]
    assert result["comparison"]
    require_form(result)
    compared = written("report", "out", "out/random", out="both", code=0)
    assert compared["command"] == "report"
    require_form(compared)


@pytest.mark.slow
def test_localize_and_nan(written: Written) -> None:
    model = ("model.json", "--data", "data.npz", "--quiet")
    result = written("localize", *model, "--targets", "a,liar")
    assert result["pairs"][0]["suspects"]
    require_form(result)
    result = written("nan", *model, "--target", "nan", "--budget", "2s")
    assert result["failure"] == "nan"
    assert result["data"] == {"source": "data.npz", "instances": 20}
    require_form(result)


def test_bisect(fake_model: Path, fake_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index(monkeypatch)
    index.misdeeds = dict.fromkeys(("1.5", "1.6", "1.7", "1.8"), "lie:d2")
    index.missing = {"1.4"}
    result = bisected(fake_model, fake_data)
    assert {row["state"] for row in result["bisect"]["releases"]} >= {"skipped", "consistent"}
    require_form(result)


@pytest.mark.parametrize("name", RESULTS)
def test_one_result_of_every_command(name: str) -> None:
    require_form(RESULTS[name])


def leaves(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every number inside."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, (dict, list)):
            yield from leaves(inner, (*way, key))
        elif isinstance(inner, (int, float)) and not isinstance(inner, bool):
            yield (*way, key)


@pytest.mark.parametrize("name", RESULTS)
def test_a_number_that_may_be_missing_may_be_missing_in_every_report(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """NaN and infinity are null in a result: what the form allows to be null, all can show."""
    result = short(RESULTS[name], most=2)
    numbers = {way: _at(result, way) for way in leaves(result)}
    for way in numbers:
        _at(result, way[:-1])[way[-1]] = None
    while required := set(numbers) & nulls_in_the_way(result):
        for way in required:
            _at(result, way[:-1])[way[-1]] = numbers.pop(way)
    require_form(result)
    assert numbers, "no number may be missing"
    assert all(rendered(format_, result, tmp_path) for format_ in formats())
    room(result["command"], "show").show(result, SimpleNamespace(out=tmp_path), Terminal().out)
    assert result["summary"].split()[0] in capsys.readouterr().out


def test_there_is_one_of_every_command_that_writes_a_result() -> None:
    commands = set(schema()["$defs"]["head"]["properties"]["command"]["enum"])
    assert {result["command"] for result in RESULTS.values()} == commands


def test_what_found_nothing_has_the_form_too() -> None:
    for result in (explore(found=False), coverage(trained=False), pollution(sure=False)):
        assert not result.get("examples")
        require_form(result)


@pytest.mark.slow
def test_explore_between_targets(
    fake_model: Path, fake_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search needs gradients, which no fake target has: what it finds is given."""
    x = np.random.default_rng(1).normal(size=(4, 4)).astype("float32")
    walk = between.Walk([x], np.zeros(4), np.ones(4), 1.0)

    def read(trip: Expedition, *given: object) -> None:
        trip.explored.data = Data((x,), None, "data.npz", (0,))

    monkeypatch.setattr(between, "_read", read)
    monkeypatch.setattr(between, "_walk", lambda *given: walk)
    targets = [fake("a"), fake("b"), fake("liar", "lie:d2")]
    job = ExploreJob((fake_model,), fake_data, targets[0])
    with LocalPool(targets) as pool:
        asked = BetweenTargets(job, tuple(targets), tmp_path)
        result = STRICT.judged(between.between_in(pool, asked))
    assert result["findings"]
    assert result["command"] == "explore"
    require_form(result)


@pytest.mark.parametrize(
    "make",
    [report_example.consistent, report_example.inconsistent, report_example.crash,
     report_example.two_maps, lambda: report_explore.EXAMPLE],
)  # fmt: skip
def test_the_examples_that_reports_are_tested_with_are_of_the_form(
    make: Callable[[], dict[str, Any]],
) -> None:
    require_form(make())


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every object inside, once per list."""
    if isinstance(value, dict):
        yield way
        for key, inner in value.items():
            yield from places(inner, (*way, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*way, 0))


def short(value: Any, most: int = 1) -> Any:
    """The same with few objects in each list of objects."""
    if isinstance(value, dict):
        return {key: short(inner, most) for key, inner in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [short(inner, most) for inner in value[:most]]
    return copy.copy(value)


FREE = {"versions", "precision", "parameters", "config", "accuracy", "errors"}
FREE |= {"accuracy_difference"}


@pytest.mark.slow
def test_a_key_too_many_or_too_few_is_seen_at_every_place() -> None:
    good = short(report_example.inconsistent())
    assert faults(good) is None
    seen = 0
    for way in places(good):
        if set(way) & FREE:
            continue
        for change in ("more", *_at(good, way)):
            bad = copy.deepcopy(good)
            place = _at(bad, way)
            if change == "more":
                place["more"] = 1
            elif {"top", "values"} & {change}:
                continue
            else:
                del place[change]
            assert not is_valid(bad), (way, change)
            seen += 1
    assert seen > 100


def _at(value: Any, way: tuple[Any, ...]) -> Any:
    for step in way:
        value = value[step]
    return value


@pytest.mark.parametrize(
    "change",
    [{"data": {"source": "x", "count": 3}}, {"schema": 1}, {"command": "guess"}, {"verdict": "?"}],
)
def test_what_was_meant_otherwise_once_is_refused(change: dict[str, Any]) -> None:
    assert faults({**report_example.consistent(), **change}) is not None
