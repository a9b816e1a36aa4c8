"""Every worker keeps the contract (tests/worker_contract.py): the fake, a toy, every library."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conftest import REAL, fake
from outvote.core.dialect import dialect, dialects
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from worker_contract import Worker, WorkerContract

# The default targets of all dialects but Keras', which the whole session shares (`real_pool`).
OTHERS = {
    name: wing.targets.BUILT_IN[name]
    for wing in dialects()
    if wing.name != "keras"
    for name in wing.targets.DEFAULT
}


@pytest.fixture(scope="module")
def fakes() -> Iterator[Pool]:
    with LocalPool([fake("one")]) as pool:
        yield pool


@pytest.fixture(scope="module")
def toys(toy_dialect: None) -> Iterator[Pool]:
    with LocalPool([dialect("toy").targets.BUILT_IN["toy-a"]]) as pool:
        yield pool


@pytest.fixture(scope="module")
def others() -> Iterator[Pool]:
    with LocalPool(list(OTHERS.values())) as pool:
        yield pool


class TestFake(WorkerContract):
    @pytest.fixture
    def worker(self, fakes: Pool) -> Worker:
        return Worker(fakes, "one")


class TestToy(WorkerContract):
    @pytest.fixture
    def worker(self, toys: Pool) -> Worker:
        return Worker(toys, "toy-a")


@pytest.mark.frameworks
class TestKeras(WorkerContract):
    @pytest.fixture(params=REAL)
    def worker(self, request: pytest.FixtureRequest, real_pool: Pool) -> Worker:
        return Worker(real_pool, request.param)


@pytest.mark.frameworks
class TestEveryOtherDialect(WorkerContract):
    @pytest.fixture(params=OTHERS)
    def worker(self, request: pytest.FixtureRequest, others: Pool) -> Worker:
        return Worker(others, request.param)
