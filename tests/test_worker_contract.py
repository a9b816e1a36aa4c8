"""Every worker keeps the contract (tests/worker_contract.py): the fake, a toy, every library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import REAL, fake
from outvote import dialects
from outvote.core.dialect import dialect
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from worker_contract import Worker, WorkerContract


@pytest.fixture(scope="module")
def fakes() -> Iterator[Pool]:
    with LocalPool([fake("one")]) as pool:
        yield pool


@pytest.fixture(scope="module")
def toys() -> Iterator[Pool]:
    with pytest.MonkeyPatch.context() as patch:
        folder = str(Path(__file__).parent / "dialects")
        patch.setenv("OUTVOTE_DIALECTS", folder)
        patch.setattr(dialects, "__path__", [*dialects.__path__, folder])
        dialect.cache_clear()
        with LocalPool([dialect("toy").targets.BUILT_IN["toy-a"]]) as pool:
            yield pool
    dialect.cache_clear()


@pytest.fixture(scope="module")
def runtimes() -> Iterator[Pool]:
    targets = dialect("onnx").targets
    with LocalPool([targets.BUILT_IN[name] for name in targets.DEFAULT]) as pool:
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
class TestOnnx(WorkerContract):
    @pytest.fixture(params=dialect("onnx").targets.DEFAULT)
    def worker(self, request: pytest.FixtureRequest, runtimes: Pool) -> Worker:
        return Worker(runtimes, request.param)
