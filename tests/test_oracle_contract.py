"""The contract of every oracle of a campaign; `test_performance.py` shows what slowness finds.

A file in `campaign/oracles` is held to it as soon as it is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from conftest import fake
from outvote.campaign import oracles
from outvote.campaign.investigate import Conclusion
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.oracle import Judged, judge
from outvote.campaign.oracles import all_oracles
from outvote.campaign.runner import ModelRun, Runner
from outvote.campaign.seeds import Seed, read_seeds
from outvote.commands.fuzz.run import start
from outvote.run.local import LocalPool
from result_form import require_form

GUIDE = Path(__file__).parent.parent / "docs" / "fuzz.md"
MANY = 60  # mutants: enough to know what is usual
every = pytest.mark.parametrize("name", sorted(all_oracles()))

HAIKU = """
from outvote.campaign.investigate import Conclusion
from outvote.findings.finding import Finding

NAME = TITLE = "haiku"

class Haiku:
    def __init__(self, dialect):
        self.dialect = dialect

    def look(self, seed, model, judged):
        (first, *_) = judged.runs
        finding = Finding("performance", f"{first} rhymes", "It should not.", (first,), first,
                          "unknown", self.dialect, library="rhyme")
        return Conclusion((finding,))

def create(runner, targets):
    return Haiku(next(iter(targets.values())).dialect)
"""


def job_of(model: Path, data: Path, misdeed: str = "") -> FuzzJob:
    targets = (fake("a"), fake("b"), fake("c", misdeed))
    return FuzzJob((SeedFile("s", model, data),), targets, budget=Budget(mutants=8), inputs=8)


def looks(name: str, job: FuzzJob, times: int) -> Iterator[tuple[Judged, Conclusion]]:
    """What an oracle makes of a model that was run three times, shown to it again and again."""
    with LocalPool(job.targets) as pool:
        pool.start()
        runner = Runner(pool, list(pool.targets))
        (seed,) = read_seeds(pool, job)
        oracle = all_oracles()[name].create(runner, pool.targets)
        seen = [judged_of(runner, seed, job) for _ in range(3)]
        for judged in islice(cycle(seen), times):
            yield judged, oracle.look(seed, seed.case.model, judged)


def judged_of(runner: Runner, seed: Seed, job: FuzzJob) -> Judged:
    (runs,) = runner.run([ModelRun(seed, seed.case.model)])
    return judge(runs, (), seed.case.truth, job.settings)


@every
def test_it_says_what_it_sees_and_the_guide_has_a_row_for_it(name: str) -> None:
    title = all_oracles()[name].TITLE
    row = rf"^\| `{re.escape(name)}` \| {re.escape(title)} \|$"
    assert re.search(row, GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    module = all_oracles()[name]
    assert hasattr(module, "require") == getattr(module, "IF_ASKED", False)


@every
def test_it_sees_nothing_in_honest_targets(name: str, fake_model: Path, fake_data: Path) -> None:
    for judged, seen in looks(name, job_of(fake_model, fake_data), MANY):
        assert len(judged.outputs) == 3
        assert seen == Conclusion()


@every
@pytest.mark.parametrize("misdeed", ["error:d2", "unsupported:d2", "nan:d2"])
def test_it_bears_targets_that_fail(
    name: str, misdeed: str, fake_model: Path, fake_data: Path
) -> None:
    for _, seen in looks(name, job_of(fake_model, fake_data, misdeed), MANY):
        for finding in seen.findings:
            assert finding.title
            assert finding.reason
            assert set(finding.targets) <= {"a", "b", "c"}


def test_a_new_oracle_is_one_module_in_its_folder(
    fake_model: Path, fake_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found by its file, sees every mutant, and what it finds is told once."""
    (tmp_path / "haiku.py").write_text(HAIKU)
    monkeypatch.setattr(oracles, "__path__", [*oracles.__path__, str(tmp_path)])
    all_oracles.cache_clear()
    try:
        result: dict[str, Any] = start(job_of(fake_model, fake_data), tmp_path / "out")
    finally:
        all_oracles.cache_clear()
    (finding,) = result["findings"]
    assert (finding["title"], finding["count"]) == ("a rhymes", result["tested"])
    require_form(result)
