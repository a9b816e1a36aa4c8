"""The result of every command has the form that report/schema/result.schema.json publishes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import report_example
import report_explore
from conftest import fake
from outvote.cli import main
from outvote.commands.coverage.job import CoverageJob, State
from outvote.commands.coverage.result import coverage_result
from outvote.commands.explore import between
from outvote.commands.explore.result import explore_result
from outvote.commands.pollution.job import Evidence
from outvote.commands.pollution.result import pollution_result
from outvote.core.case import Data
from outvote.core.model import Input, Layer, Model, Ref
from outvote.core.result import SCHEMA
from outvote.core.target import Outcome, Run
from outvote.explore.job import Coverage, Differences, Explored, ExploreJob, Subject
from outvote.run.local import LocalPool
from result_form import faults, is_valid, require_form, schema
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


def test_the_schema_is_one_and_its_number_is_the_programs() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["$defs"]["head"]["properties"]["schema"] == {"const": SCHEMA}
    assert schema()["$id"].endswith(f":{SCHEMA}")


@pytest.mark.parametrize(
    ("targets", "code"), [("a,b", 0), ("a,b,liar", 1), ("a,b,nan", 1), ("a,b,fails", 1)]
)
def test_check(written: Written, targets: str, code: int) -> None:
    result = written(*CHECK, targets, code=code)
    assert bool(result["findings"]) is bool(code)
    require_form(result)


def test_fuzz_its_rival_and_the_comparison(written: Written) -> None:
    result = written(*FUZZ, "a,b,odd", "--budget", "56", "--compare", "random")
    assert result["findings"]
    assert result["samples"]
    assert result["comparison"]
    require_form(result)
    compared = written("report", "out", "out/random", out="both", code=0)
    assert compared["command"] == "report"
    require_form(compared)


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


HELLO = Run("t", Outcome.OK, {"versions": {"keras": "3"}, "precision": {}, "python": "3.11"})
MODEL = Model(
    "m",
    (Input("x", (None, 8, 8, 1), "float32"),),
    (Layer("d", "Dense", {}, args=[{"$ref": ["x", 0]}]),),
    (Ref("d"),),
    dialect="keras",
)
PICTURES = np.random.default_rng(0).random((6, 8, 8, 1)).astype("float32")
LAYERS = [{"name": "d", "kind": "Dense", "neurons": 2}]


def explored(found: bool) -> Explored:
    """An exploration that has come to its end."""
    job = ExploreJob((Path("a.keras"), Path("b.keras")), Path("seeds.npz"), fake("t"))
    answers = [np.array([[0.9, 0.1]]), np.array([[0.2, 0.8]])]
    before = [np.array([[0.9, 0.1]])] * 2
    one = Differences(np.array([0]), [PICTURES[:1]], answers, before, np.array([3]), np.array([1]))
    return Explored(
        job,
        hello=HELLO,
        subjects=[Subject(n, Path(f"{n}.keras"), MODEL, (None, 2)) for n in ("a", "b")],
        data=Data((PICTURES,), None, "seeds.npz", (0,)),
        layers=[LAYERS, LAYERS],
        tried=6,
        found=one if found else None,
        best=[np.array([0.0, 1.0])] * 2,
        covered={"explore": Coverage([np.array([0.0, 1.0])] * 2, [np.array([9, 0])] * 2, 6)},
        split_by={"explore": 1} if found else {},
        search_seconds=1.0,
        first_seconds=0.5 if found else None,
    )


@pytest.mark.parametrize("found", [True, False])
def test_explore_between_models(found: bool) -> None:
    result = explore_result(explored(found))
    assert bool(result["examples"]) is found
    require_form(result)


def test_explore_between_targets(
    fake_model: Path, fake_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search needs gradients, which no fake target has: what it finds is given."""
    x = np.random.default_rng(1).normal(size=(4, 4)).astype("float32")
    walk = between.Walk([x], np.zeros(4), np.ones(4), 1.0)
    started = explored(found=False)
    started.data = Data((x,), None, "data.npz", (0,))
    monkeypatch.setattr(between, "_read", lambda *given: started)
    monkeypatch.setattr(between, "_walk", lambda *given: walk)
    targets = [fake("a"), fake("b"), fake("liar", "lie:d2")]
    job = ExploreJob((fake_model,), fake_data, targets[0])
    with LocalPool(targets) as pool:
        result = between.between_in(pool, job, targets, tmp_path)
    assert result["findings"]
    assert result["command"] == "explore"
    require_form(result)


@pytest.mark.parametrize("trained", [True, False])
def test_coverage(trained: bool) -> None:
    low, high = np.array([[0.0, 0.1], [0.5, 0.9]]) if trained else np.zeros((2, 0))
    ones = np.array([0.2, 0.9])
    state = State(ones, ones, ones, ones > 0, np.ones((2, 3), bool), low, high, 6)
    job = CoverageJob(Path("m.keras"), Path("d.npz"), fake("t"))
    data = Data((PICTURES,), None, "d.npz", (0,))
    result = coverage_result(job, MODEL, data, HELLO, LAYERS, state, datetime.now(UTC), 1.0)
    assert (result["coverage"]["criteria"]["boundary"] is not None) is trained
    require_form(result)


@pytest.mark.parametrize("sure", [True, False])
def test_pollution(sure: bool) -> None:
    started = explored(found=False)
    evidence = Evidence(9, 1, PICTURES[:2], PICTURES[2:], 0.2) if sure else None
    suspects, scores = (np.array([4]), np.array([0.5])) if sure else (np.zeros(0, int), np.zeros(0))
    data = {"source": "train.npz", "instances": 6}
    result = pollution_result(started.job, started, evidence, suspects, scores, PICTURES, data)
    assert bool(result["examples"]) is sure
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


def short(value: Any) -> Any:
    """The same with one object in each list of objects."""
    if isinstance(value, dict):
        return {key: short(inner) for key, inner in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [short(value[0])]
    return value


FREE = {"versions", "precision", "parameters", "config", "accuracy", "errors"}
FREE |= {"accuracy_difference"}


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
