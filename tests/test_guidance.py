"""LEMON's guidance, its baseline, and the performance oracle: functions of what they are told."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.campaign.job import FuzzJob
from outvote.campaign.oracle import judge
from outvote.campaign.performance.drift import culprit, drifts, slow_targets
from outvote.core.blobs import BlobStore
from outvote.core.errors import UsageError
from outvote.core.outputs import Outputs
from outvote.core.protocol import LayerMade, R, Ran, Request
from outvote.core.target import Outcome, Run
from outvote.core.truth import Truth
from outvote.dialects.keras.mutate.maker import Maker
from outvote.search.registry import strategy
from outvote.search.strategy import Choice, Experience, Offspring
from outvote.store.store import Sample
from outvote.store.strongest import Strongest

RULES = dict.fromkeys("ABCD", "lemon")


def memory(seed: int = 0) -> Experience:
    return Experience.new({1: 10.0}, RULES, seed)


def test_a_mutant_joins_when_it_amplifies_its_seed() -> None:
    known = memory()
    lemon = strategy("lemon", known)
    assert lemon.tell(Choice(1, "A"), Offspring(2, 10.0))
    assert not lemon.tell(Choice(1, "A"), Offspring(3, 9.9))
    assert not lemon.tell(Choice(1, "A"), Offspring(4, None))
    assert not lemon.tell(Choice(1, "A"), Offspring(5, 99.0, breeds=False))
    assert [member.number for member in known.members] == [1, 2]
    assert lemon.state()["tallies"]["A"] == [4, 2]


def test_a_gap_adds_nothing_to_acc_and_does_not_keep_a_mutant_from_breeding() -> None:
    truth = Truth(labels=np.array([0, 1]), classes=2)

    def ran(name: str, sure: float) -> Run[Ran]:
        array = np.array([[sure, 1 - sure], [1 - sure, sure]], np.float32)
        return Run(name, Outcome.OK, Ran(outputs=Outputs((array,), ("float32",))))

    def acc(**runs: Run[Ran]) -> float | None:
        return judge(runs, (), truth, FuzzJob((), ()).settings).acc

    a, b, c = ran("a", 0.9), ran("b", 0.8), ran("c", 0.7)
    gap: Run[Ran] = Run("c", Outcome.UNSUPPORTED)
    whole, part = acc(a=a, b=b, c=c), acc(a=a, b=b, c=gap)
    assert whole is not None
    assert part is not None
    assert part == pytest.approx(2 * 0.1 / 0.3, rel=1e-5)
    assert 0 < part < whole
    assert acc(a=a, b=Run("b", Outcome.UNSUPPORTED)) is None


def test_a_rule_that_did_not_apply_counts_for_nothing() -> None:
    lemon = strategy("lemon", memory())
    before = json.dumps(lemon.state())
    assert not lemon.tell(Choice(1, "B"), Offspring(None))
    assert json.dumps(lemon.state()) == before


def test_seeds_that_were_rarely_chosen_come_first() -> None:
    """Roulette wheel on 1 / (times chosen + 1): 1/10 against 1."""
    lemon = strategy("lemon", memory())
    lemon.tell(Choice(1, "A"), Offspring(2, 20.0))
    for number in range(8):
        lemon.tell(Choice(1, "A"), Offspring(10 + number, 0.0))
    chosen = Counter(lemon.ask().parent for _ in range(2000))
    assert chosen[1] / 2000 == pytest.approx(0.1 / 1.1, abs=0.03)


@pytest.mark.slow
def test_rules_that_amplify_are_chosen_more_often_but_none_is_left_out() -> None:
    lemon = strategy("lemon", memory())
    for number in range(30):
        for rule in RULES:
            lemon.tell(Choice(1, rule), Offspring(100 + number, 20.0 if rule == "D" else 0.0))
    chosen: Counter[str] = Counter()
    for _ in range(4000):
        choice = lemon.ask()
        chosen[choice.rule] += 1
        lemon.tell(Choice(1, choice.rule), Offspring(1000, 20.0 if choice.rule == "D" else 0.0))
    assert chosen["D"] == max(chosen.values())
    # Stationary weights are (1 - p)^rank with p = 0.08: the first is chosen 1.28 times as often
    # as the fourth.
    assert chosen["D"] / min(chosen.values()) == pytest.approx((1 - 0.08) ** -3, rel=0.2)


def test_random_asks_for_everything_alike_and_keeps_every_mutant() -> None:
    plain = strategy("random", memory())
    for number in range(3):
        assert plain.tell(Choice(1, "A"), Offspring(2 + number, 0.0))
    rules = Counter(plain.ask().rule for _ in range(4000))
    parents = Counter(plain.ask().parent for _ in range(4000))
    assert max(rules.values()) / min(rules.values()) < 1.2
    assert max(parents.values()) / min(parents.values()) < 1.2


def test_an_unknown_strategy_is_said() -> None:
    with pytest.raises(
        UsageError, match="no strategy 'best'; choose from audee, layers, lemon, mixed, random"
    ):
        strategy("best", memory())


def test_only_the_strongest_inconsistency_of_an_input_counts() -> None:
    strongest = Strongest()
    pair = ("a", "b")
    strongest.add(1, {pair: np.array([0.1, 0.5, 0.0])}, first=True)
    strongest.add(1, {pair: np.array([0.6, 0.2, 0.1])}, first=False)
    strongest.add(1, {pair: np.array([0.5, 0.7, 0.2])}, first=False)
    again = Strongest.restored(json.loads(json.dumps(strongest.state())))
    (row,) = again.table(0.4)
    assert (row["inconsistencies"], row["mutants_only"], row["initial_only"]) == (2, 1, 0)
    assert row["initial_mean"] == pytest.approx(0.3)
    assert row["mutants_mean"] == pytest.approx(0.65)
    assert row["amplification"] == pytest.approx(0.65 / 0.3 - 1)


def samples(**series: list[float]) -> list[Sample]:
    return [
        Sample(50 * i, name, value, 100 << 20, 0)
        for name, values in series.items()
        for i, value in enumerate(values)
    ]


def test_a_target_that_gets_slower_than_itself_and_the_others_drifts() -> None:
    slow = [0.1 * (1 + i) for i in range(15)]
    (drift,) = drifts(samples(good=[0.1] * 15, slow=slow))
    assert (drift.target, drift.what) == ("slow", "seconds")
    assert len(drift.series) == 15


def test_a_machine_that_gets_busy_accuses_nobody() -> None:
    slow = [0.1 * (1 + i) for i in range(9)]
    assert drifts(samples(a=slow, b=slow)) == []


def test_the_first_sample_and_few_samples_prove_nothing() -> None:
    assert drifts(samples(a=[9.0] + [0.1] * 8, b=[0.1] * 9)) == []
    assert drifts(samples(a=[0.1, 0.1, 5.0], b=[0.1] * 3)) == []


def test_memory_is_measured_from_the_last_start_of_the_worker() -> None:
    def growing(restarts: list[int]) -> list[Sample]:
        sizes = [100 + 90 * i for i in range(15)]
        return [
            Sample(i, name, 0.1, (size if name == "leaky" else 100) << 20, restart)
            for name in ("leaky", "good")
            for i, (size, restart) in enumerate(zip(sizes, restarts, strict=True))
        ]

    (drift,) = drifts(growing([0] * 15))
    assert (drift.target, drift.what) == ("leaky", "bytes")
    assert drifts(growing([i // 5 for i in range(15)])) == []


def test_a_cache_that_fills_is_no_leak() -> None:
    def sizes(values: list[int]) -> list[Sample]:
        return [Sample(i, "a", 0.1, size << 20, 0) for i, size in enumerate(values)] + [
            Sample(i, "b", 0.1, 100 << 20, 0) for i in range(len(values))
        ]

    assert drifts(sizes([100, 150, 200, 300, 600, 610, 615, 620, 620, 620])) == []
    (drift,) = drifts(sizes([100, 150, 200, 250, 300, 350, 400, 450, 500, 550]))
    assert (drift.target, drift.what) == ("a", "bytes")


def test_the_layer_that_makes_a_target_slow_is_told_from_layers_slow_everywhere() -> None:
    kinds = {"one": "Noise", "dense": "Dense", "two": "Noise"}
    others = {"one": 0.0, "dense": 0.5, "two": 0.0}

    def found(*own: float) -> str | None:
        seconds = {"a": dict(zip(kinds, own, strict=True)), "b": others, "c": others}
        return culprit(seconds, kinds, "a")

    assert found(0.25, 0.5, 0.0) == "one"
    assert found(0.25, 1.0, 0.5) == "two"  # 0.75 s by two layers of one kind, 0.5 by the other
    assert found(0.25, 1.0, 0.25) is None  # as much by the one kind as by the other
    assert found(0.0, 0.5, 0.0) is None


def test_one_slow_case_is_measured_against_the_other_targets() -> None:
    usual = {"a": 0.1, "b": 0.05}
    assert slow_targets({"a": 5.0, "b": 0.06}, usual) == ["a"]
    assert slow_targets({"a": 5.0, "b": 2.6}, usual) == []
    assert slow_targets({"a": 0.4, "b": 0.0001}, usual) == []


def test_a_kill_while_a_layer_is_made_does_not_change_what_it_becomes(tmp_path: Path) -> None:
    """The answer of a killed worker is no answer; one that dies of it is asked plainly."""
    good = Run("a", Outcome.OK, LayerMade(spec={"kind": "K"}, weights=(), outputs=()))
    killed = Run("a", Outcome.MEMORY)
    crashed = Run("a", Outcome.CRASH)
    for deaths in ([killed], [killed, killed], [crashed], [killed] * 3, [crashed] * 3):
        answers = [*deaths, good]
        asked: list[Any] = []

        def ask(
            request: Request[R], answers: list[Run] = answers, asked: list[Any] = asked
        ) -> Run[R]:
            asked.append(request)
            return answers.pop(0)

        assert Maker(ask, BlobStore(tmp_path)).make("K", {}, []) is not None
        assert asked[-1].tried == (len(deaths) < 3)
    refused = Maker(lambda request: Run("a", Outcome.ERROR), BlobStore(tmp_path))
    assert refused.make("K", {}, []) is None
    assert refused.refused == 1
