"""Workers are divided off a process that has their library: quick, and as separate as any other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from conftest import fake
from outvote.core.target import Outcome, Target
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.local import LocalPool
from outvote.run.nursery import Nursery
from outvote.run.process import Limits
from test_workers_fake import LIMITS, run_once

WITH_A_THREAD = """
import threading, time
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
from outvote.dialects.keras.workers.fake import create
"""


@pytest.fixture(autouse=True)
def _own_nursery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outvote.run.local.Nursery", Nursery)


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    """A target whose library fails while it is imported, and says why."""
    wing = tmp_path / "dialects"
    (wing / "odd" / "workers").mkdir(parents=True)
    (wing / "odd" / "__init__.py").write_text("")
    (wing / "odd" / "workers" / "__init__.py").write_text("")
    monkeypatch.setenv("OUTVOTE_DIALECTS", str(wing))
    return replace(fake("odd"), dialect="odd", worker="bad")


def of(pool: LocalPool) -> dict[str, psutil.Process]:
    return {name: psutil.Process(process.pid) for name, process in pool._processes.items()}


def standing(pool: LocalPool) -> list[psutil.Process]:
    """Children of ours that are no workers."""
    workers = {process.pid for process in pool._processes.values()}
    zygotes = {zygote.popen.pid for zygote in pool._nursery._zygotes.values()}
    assert not workers & zygotes
    return [psutil.Process(pid) for pid in zygotes]


def test_workers_of_one_library_share_its_import_and_nothing_else(fake_model: Path) -> None:
    with LocalPool([fake("a"), fake("b", "crash:d2")], limits=LIMITS) as pool:
        pool.start()
        workers = of(pool)
        (zygote,) = standing(pool)
        assert {worker.ppid() for worker in workers.values()} == {os.getpid()}
        groups = {os.getpgid(p.pid) for p in [zygote, *workers.values()]}
        assert len(groups) == 3
        first, again = run_once(pool, fake_model), run_once(pool, fake_model)
        assert first["a"].ok
        assert again["a"].ok
        assert pool._processes["a"].pid == workers["a"].pid
        assert [runs["b"].outcome for runs in (first, again)] == [Outcome.CRASH] * 2
        assert standing(pool) == [zygote]
    _, alive = psutil.wait_procs([zygote, *workers.values()], timeout=0)
    assert not alive


def test_few_stand_ready_at_a_time(fake_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds a library: those used longest ago end, and their workers live on."""
    monkeypatch.setattr("outvote.run.nursery._MOST", 2)
    targets = [replace(fake(name), packages=("numpy",), mode=name) for name in "abc"]
    with LocalPool(targets, limits=LIMITS) as pool:
        for target in targets:
            pool.start([target.name])
        assert len(standing(pool)) == 2
        assert all(run.ok for run in run_once(pool, fake_model).values())
        pool.recycle("a")
        assert run_once(pool, fake_model)["a"].ok
        assert len(standing(pool)) == 2


def test_what_stands_ready_may_be_killed(fake_model: Path) -> None:
    with LocalPool([fake("a")], limits=LIMITS) as pool:
        pool.start()
        (before,) = standing(pool)
        os.kill(before.pid, signal.SIGKILL)
        pool.recycle("a")
        assert run_once(pool, fake_model)["a"].ok
        (after,) = standing(pool)
        assert after.pid != before.pid


@pytest.mark.parametrize(
    ("text", "outcome", "says"),
    [
        ("raise ImportError('no library of that name')", Outcome.ERROR, "no library of that name"),
        ("import os; os.abort()", Outcome.CRASH, "SIGABRT"),
        ("import time; time.sleep(60)", Outcome.HANG, "no progress"),
    ],
)
def test_a_library_that_cannot_be_imported_is_told_as_ever(
    broken: Target, text: str, outcome: Outcome, says: str, tmp_path: Path
) -> None:
    (tmp_path / "dialects" / "odd" / "workers" / "bad.py").write_text(text)
    patience = 1.0 if outcome is Outcome.HANG else 60.0
    both = [broken, replace(broken, name="odder")]
    with LocalPool(both, limits=Limits(start_seconds=patience), jobs=2) as pool:
        for hello in pool.start().values():
            assert hello.outcome is outcome
            assert says in hello.message


def test_a_library_with_threads_is_not_divided(broken: Target, tmp_path: Path) -> None:
    """A copy would lack them: the process becomes the worker, and the next one starts anew."""
    (tmp_path / "dialects" / "odd" / "workers" / "bad.py").write_text(WITH_A_THREAD)
    with LocalPool([broken], limits=LIMITS) as pool:
        assert pool.start()["odd"].ok
        assert not pool._nursery._zygotes
        first = of(pool)["odd"].pid
        pool.stop("odd")
        assert pool.start()["odd"].ok
        assert of(pool)["odd"].pid != first


def test_of_two_that_ask_at_once_only_one_gets_the_process_itself(
    broken: Target, tmp_path: Path
) -> None:
    (tmp_path / "dialects" / "odd" / "workers" / "bad.py").write_text(WITH_A_THREAD)
    both = [broken, replace(broken, name="odder")]
    with LocalPool(both, limits=LIMITS, jobs=2) as pool:
        assert [run.ok for run in pool.start().values()] == [True, True]
        assert len({process.pid for process in of(pool).values()}) == 2


def test_a_driver_that_is_killed_takes_what_stands_ready_with_it(tmp_path: Path) -> None:
    script = """
import sys, time
sys.path.append(sys.argv[1])
from conftest import fake
from outvote.run.local import LocalPool
with LocalPool([fake("a"), fake("b")]) as pool:
    pool.start()
    zygotes = [zygote.popen.pid for zygote in pool._nursery._zygotes.values()]
    print(*zygotes, *(process.pid for process in pool._processes.values()), flush=True)
    time.sleep(600)
"""
    command = [sys.executable, "-c", script, str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        children = [psutil.Process(int(pid)) for pid in driver.stdout.readline().split()]
        driver.kill()
    assert len(children) == 3
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive


@pytest.mark.frameworks
def test_workers_of_openvino_are_divided_too() -> None:
    """Its telemetry would have a thread."""
    with LocalPool([BUILT_IN["openvino"]]) as pool:
        for _ in range(2):
            assert pool.start(["openvino"])["openvino"].ok
            (zygote,) = standing(pool)
            assert zygote.num_threads() == 1
            pool.stop("openvino")
