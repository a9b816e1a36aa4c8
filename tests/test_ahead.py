"""One crew has several generations under way, where the strategy may be asked ahead."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from outvote.campaign.crews import Brood, OneCrew
from outvote.campaign.job import FuzzJob
from outvote.campaign.orders import TryOut
from outvote.campaign.runner import Runner
from outvote.core.target import Outcome, Run
from outvote.store.rows import Birth


@dataclass
class Watched:
    """A crew that notes what it is asked to do."""

    told: list[str] = field(default_factory=list)

    def set_out(self, births: Sequence[Birth], ancestors: Sequence[Birth]) -> Reports:
        self.told.append(f"runs {births[0].number}")
        return Reports(births)

    def brood(self, number: int) -> Brood:
        (report,) = yield TryOut((Birth(number, 1, "LA", 0),), ())
        self.told.append(f"stores {report}")


@dataclass(frozen=True)
class Reports:
    births: Sequence[Birth]

    def reports(self) -> list[int]:
        return [birth.number for birth in self.births]


ONE_BY_ONE = ["runs 1", "stores 1", "runs 2", "stores 2", "runs 3", "stores 3"]
AHEAD = ["runs 1", "runs 2", "stores 1", "runs 3", "stores 2", "stores 3"]


@pytest.mark.parametrize(
    ("strategy", "oracle", "told"),
    [
        ("layers", "", AHEAD),
        ("layers", "metamorphic", ONE_BY_ONE),  # it asks in sessions while it judges
        ("lemon", "", ONE_BY_ONE),
    ],
)
def test_targets_have_the_next_generation_before_the_last_is_judged(
    strategy: str, oracle: str, told: list[str], tmp_path: Path
) -> None:
    crew = Watched()
    job = FuzzJob((), (), strategy=strategy, oracle=oracle)
    crews = OneCrew(job, cast(Any, None), tmp_path, lambda event: None)
    crews.crew = cast(Any, crew)
    broods = [crew.brood(number) for number in (3, 2, 1)]
    while crews.finish_one(lambda: broods.pop() if broods else None):
        pass
    assert crew.told == told


class SlowPool:
    """Answers after a while, and notes who was asked what."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def ask(self, request: int) -> Run[Any]:
        self.asked.append(request)
        time.sleep(0.02)
        return Run("a", Outcome.OK)

    def talk_to_each(self, names: Any, talk: Callable[[str, Any], Any]) -> dict[str, Any]:
        return {name: talk(name, self.ask) for name in names}


@dataclass(frozen=True)
class Numbered:
    number: int

    def request(self, keep: bool) -> Any:
        return self.number


def test_a_target_has_all_of_a_generation_before_any_of_the_next() -> None:
    pool = SlowPool()
    runner = Runner(cast(Any, pool), ["a"])
    with ThreadPoolExecutor(2) as threads:
        for first in (0, 4):
            threads.submit(runner.run, [Numbered(first + place) for place in range(4)])
            time.sleep(0.01)
    assert pool.asked == list(range(8))
