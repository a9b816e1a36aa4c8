"""AUDEE's strategy and the mixed one, in campaigns on fake targets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import fake
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.probes.illegal import Attempt, Refusals, findings_of
from outvote.commands.fuzz.run import resume, start
from outvote.core.errors import UsageError
from outvote.core.model import Layer
from outvote.core.protocol import AttemptLayer
from outvote.core.target import Outcome, Run, Target
from outvote.run.process import Limits
from outvote.search.audee import SHARES
from outvote.search.genetic import GeneticSettings
from outvote.search.registry import strategy
from outvote.search.strategy import Choice, Experience, Offspring

pytestmark = pytest.mark.slow


@pytest.fixture
def seed(fake_model: Path) -> Path:
    """The fake model with `units` in its configurations, so that there is something to change."""
    data = json.loads(fake_model.read_text())
    for layer in data["layers"]:
        if layer["kind"] == "Dense":
            layer["config"] = {"units": 6}
    fake_model.write_text(json.dumps(data))
    return fake_model


def job_of(model: Path, targets: list[Target], **more: Any) -> FuzzJob:
    settings: dict[str, Any] = {
        "strategy": "audee",
        "budget": Budget(mutants=24),
        "inputs": 8,
        "genetic": GeneticSettings(population=5, elite=2, generations=1),
        **more,
    }
    return FuzzJob((SeedFile("seed", model, None),), tuple(targets), **settings)


def one_that(misdeed: str) -> list[Target]:
    return [fake("a"), fake("b"), fake("bad", misdeed)]


def by_rule(result: dict[str, Any]) -> dict[str, int]:
    return {rule["rule"]: rule["tested"] for rule in result["rules"]}


def test_honest_targets_give_no_finding_and_every_choice_is_used(
    seed: Path, tmp_path: Path
) -> None:
    result = start(job_of(seed, one_that(""), budget=Budget(mutants=32)), tmp_path / "out")
    assert result["findings"] == []
    assert set(by_rule(result)) == set(SHARES)
    assert by_rule(result)["NET"] > by_rule(result)["ILL"] > 0
    assert (result["tested"], result["invalid"]) == (32, 0)
    assert result["values"]["exercised"] > 0
    assert any(text.startswith("Dense units") for text in result["values"]["counts"])


def test_who_accepts_an_illegal_value_is_accused(seed: Path, tmp_path: Path) -> None:
    job = job_of(seed, one_that("accept:Dense"), rules=("ILL",), budget=Budget(mutants=8))
    (finding,) = start(job, tmp_path / "out")["findings"]
    assert (finding["kind"], finding["accused"], finding["triage"]) == ("illegal", "bad", "bug")
    assert finding["layer_kind"] == "Dense"
    assert "bad accepts the illegal units=" in finding["title"]
    assert finding["title"].endswith("of Dense, which a and b refuse")
    assert finding["count"] > 1


@pytest.mark.parametrize(("misdeed", "kind"), [("crash", "crash"), ("hang", "hang")])
def test_dying_or_hanging_of_an_illegal_value_is_a_finding(
    seed: Path, tmp_path: Path, misdeed: str, kind: str
) -> None:
    """It behaves on legal values: only the attempt brings it down."""
    targets = [fake("a"), fake("b"), fake("bad", f"{misdeed}:illegal")]
    limits = Limits(silence_seconds=1.0)
    job = job_of(seed, targets, rules=("ILL",), budget=Budget(mutants=3), limits=limits)
    result = start(job, tmp_path / "out")
    assert {(f["kind"], f["accused"]) for f in result["findings"]} == {(kind, "bad")}
    assert "on the illegal units=" in result["findings"][0]["title"]


def run(name: str, outcome: Outcome, message: str = "") -> Run:
    return Run(name, outcome, message=message)


def attempt() -> Attempt:
    request = AttemptLayer(kind="Dense", parameters={"units": 0}, given=(), joined=False)
    return Attempt(Layer("d", "Dense", {}), "units", 0, request)


def test_other_words_or_types_of_a_refusal_are_no_finding() -> None:
    targets = {name: fake(name) for name in "abc"}
    refused = {
        "a": run("a", Outcome.ERROR, "ValueError: units"),
        "b": run("b", Outcome.ERROR, "TypeError: something else"),
        "c": run("c", Outcome.UNSUPPORTED, "not implemented"),
    }
    assert findings_of(attempt(), Refusals(refused), targets) == []
    accepted = {name: run(name, Outcome.OK) for name in "abc"}
    assert (
        findings_of(attempt(), Refusals(accepted), targets) == []
    )  # it accuses nobody: it is listed


def test_several_that_accept_accuse_none_alone() -> None:
    targets = {name: fake(name) for name in "abc"}
    runs = {
        "a": run("a", Outcome.OK),
        "b": run("b", Outcome.OK),
        "c": run("c", Outcome.ERROR, "no"),
    }
    (finding,) = findings_of(attempt(), Refusals(runs), targets)
    assert (finding.accused, finding.triage, finding.targets) == (None, "unknown", ("a", "b"))
    assert finding.title == "a and b accept the illegal units=0 of Dense, which c refuses"


def test_searches_at_all_levels_show_a_fault(seed: Path, tmp_path: Path) -> None:
    """Searches at all three levels go through the oracle like any mutant."""
    rules = ("IN", "WT", "IN-WT")
    job = job_of(seed, one_that("lie:d2"), rules=rules, budget=Budget(mutants=8))
    result = start(job, tmp_path / "out")
    assert {f["accused"] for f in result["findings"]} == {"bad"}
    assert all(by_rule(result)[rule] for rule in rules)
    assert all(row["joined"] == 0 for row in result["rules"]), "what was searched does not breed"


def test_the_same_seed_gives_the_same_campaign_and_it_can_go_on(seed: Path, tmp_path: Path) -> None:
    """By AUDEE's choices and LEMON's in turn; tests/test_strategy_contract.py: each alone."""
    targets = one_that("lie:Rescaling")

    def essence(result: dict[str, Any]) -> Any:
        found = [(f["fingerprint"], f["count"], f["first"]) for f in result["findings"]]
        return by_rule(result), found

    whole = start(
        job_of(seed, targets, strategy="mixed", budget=Budget(mutants=16)), tmp_path / "whole"
    )
    half = job_of(seed, targets, strategy="mixed", budget=Budget(mutants=8))
    start(half, tmp_path / "half")
    known = {target.name: target for target in targets}
    rest = resume(tmp_path / "half", known, changes={"budget": Budget(mutants=16)})
    assert essence(rest) == essence(whole)


def test_rules_that_a_strategy_does_not_have_are_refused(seed: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lemon has none of the rules NET"):
        start(job_of(seed, one_that(""), strategy="lemon", rules=("NET",)), tmp_path)


RULES = {**dict.fromkeys(["LA", "GF"], "lemon"), **dict.fromkeys(SHARES, "audee")}


def memory() -> Experience:
    return Experience.new({1: 1.0}, RULES, 0)


def test_the_bandit_turns_to_the_strategy_that_finds() -> None:
    mixed = strategy("mixed", memory())
    rng = np.random.default_rng(0)
    chosen = []
    for number in range(300):
        choice = mixed.ask()
        chosen.append(choice.by)
        found = choice.by == "audee" and rng.random() < 0.3
        mixed.tell(choice, Offspring(number + 2, 0.0, breeds=False, found=int(found)))
    assert {"lemon", "random", "audee"} == set(chosen)
    assert chosen[150:].count("audee") > 100
    restored = strategy("mixed", Experience.restored(json.loads(json.dumps(mixed.state()))))
    assert restored.ask() == mixed.ask()


def test_the_bandit_counts_what_a_search_costs() -> None:
    mixed = strategy("mixed", memory())
    by = []
    for number in range(200):
        choice = mixed.ask()
        by.append(choice.by)
        cost = 60 if choice.by == "audee" else 1
        mixed.tell(choice, Offspring(number + 2, 0.0, breeds=False, found=number % 2, cost=cost))
    assert by.count("audee") < 0.1 * len(by)


def test_what_did_not_apply_costs_nothing_and_lemon_keeps_to_its_rules() -> None:
    mixed = strategy("mixed", memory())
    choice = mixed.ask()
    mixed.tell(choice, Offspring(None))
    assert mixed.state()["arms"][choice.by] == [0, 0]
    for name, own in (("lemon", False), ("random", False), ("audee", True)):
        alone = strategy(name, memory())
        rules = {alone.ask().rule for _ in range(50)}
        assert all((rule in SHARES) == own for rule in rules)
        assert not alone.tell(Choice(1, next(iter(rules))), Offspring(None))


def test_half_of_the_choices_fall_on_seeds_whatever_joined() -> None:
    """Variants that joined one after the other were taken for seeds: 2, 3, 4 behind seed 1."""
    alone = strategy("audee", memory())
    for number in range(2, 100):
        assert alone.tell(Choice(1, "NET"), Offspring(number, 0.0))
    again = strategy("audee", Experience.restored(json.loads(json.dumps(alone.state()))))
    for asked in (alone, again):
        parents = [asked.ask().parent for _ in range(400)]
        assert parents.count(1) == pytest.approx(200, abs=40)


def test_a_strategy_whose_rules_apply_nowhere_does_not_starve_the_others() -> None:
    """An arm that was never used has the best bound; one whose choice came to nothing stayed so."""
    mixed = strategy("mixed", memory())
    applies = []
    for number in range(200):
        choice = mixed.ask()
        applies.append(choice.rule in SHARES)
        mixed.tell(choice, Offspring(number + 2 if applies[-1] else None, 0.0, breeds=False))
    assert applies.count(True) > 100
    joined = mixed.ask()
    assert joined.by == "audee"
    mixed.tell(joined, Offspring(999, 0.0))  # a model that nobody has tried the other rules on
    assert {mixed.ask().by for _ in range(3)} != {"audee"}


def test_rules_without_a_place_leave_the_campaign_to_the_others(seed: Path, tmp_path: Path) -> None:
    """No layer of this model has an activation."""
    more = {"strategy": "mixed", "rules": ("AFRm", "NET"), "budget": Budget(mutants=8)}
    job = job_of(seed, one_that(""), **more)
    tested = by_rule(start(job, tmp_path / "out"))
    assert (tested["AFRm"], tested["NET"]) == (0, 8)
