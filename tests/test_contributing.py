"""The examples in CONTRIBUTING.md keep the contracts that it names."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import test_metric_contract as metrics
import test_oracle_contract as oracles
from every_command import RESULTS
from outvote import report
from outvote.campaign.oracles import all_oracles
from outvote.judge.metrics import all_metrics
from outvote.report import formats
from test_docs import ROOT, blocks
from test_hostile_text import marked_up

Load = Callable[[str, str], ModuleType]


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Load]:
    """A function that imports the example whose text holds a word, under a name."""
    names = []

    def load(word: str, name: str) -> ModuleType:
        text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        (found,) = [block for block in blocks(text, "python") if word in block]
        path = tmp_path / "example.py"
        path.write_text(found, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        names.append(name)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in names:
        del sys.modules[name]


def test_the_metric(example: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "total-variation"
    monkeypatch.setitem(all_metrics(), name, example("def measure", "example_metric"))
    metrics.test_one_distance_per_instance_the_same_both_ways(name=name)
    metrics.test_what_is_equal_does_not_count_and_has_distance_zero(name=name)
    metrics.test_what_has_no_number_on_one_side_counts(name=name)
    metrics.test_an_instance_is_judged_by_itself(name=name)
    metrics.test_no_instance_has_no_distance(name)
    metrics.test_it_is_not_asked_for_a_truth_that_it_does_not_need(name)


def test_the_report_format(example: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "example_format"
    example("def render", f"{formats.__name__}.{name}")
    monkeypatch.setattr(report, "names", lambda: [name])
    for command, result in RESULTS.items():
        (path,) = report.write_all(result, tmp_path)
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) == len(result.get("findings", [])), command
        assert all(line.count("\t") == 2 for line in lines)
    assert isinstance(report.rendered(name, marked_up(RESULTS["check"])), str)


def test_the_oracle(
    example: Load, fake_model: Path, fake_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "void"
    monkeypatch.setitem(all_oracles(), name, example("def look", "example_oracle"))
    oracles.test_it_sees_nothing_in_honest_targets(name, fake_model, fake_data)
    oracles.test_it_bears_targets_that_fail(name, "error:d2", fake_model, fake_data)
