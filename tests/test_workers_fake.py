"""Whatever a worker does is a Run with an outcome; it is replaced, and other results stand."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import fake
from outvote.bench.reader import read_model
from outvote.commands.check.job import Job
from outvote.commands.check.run import run_check
from outvote.core.protocol import Ran, RunModel
from outvote.core.target import Outcome, Run
from outvote.run.local import LocalPool
from outvote.run.nursery import Nursery
from outvote.run.pool import Pool
from outvote.run.process import Limits, _has_ended
from outvote.run.queued import Queue, shares_of

LIMITS = Limits(start_seconds=60, silence_seconds=60, memory_bytes=300 << 20)
IMPATIENT = replace(LIMITS, silence_seconds=2)


@pytest.fixture
def _started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every worker is a process that was started, as where none can be divided."""
    monkeypatch.setattr("outvote.run.local.Nursery", Nursery)
    monkeypatch.setattr("outvote.run.nursery._CAN_DIVIDE", False)


def run_once(pool: Pool, model_path: Path) -> dict[str, Run[Ran]]:
    model, _ = read_model(pool, model_path, None)
    inputs = (pool.blobs.put(np.ones((3, 4), np.float32)),)
    steps = len(model.layers)
    request = RunModel(model=model, inputs=inputs, batch=3, steps=steps)
    return pool.ask_all(pool.targets, request)


MISDEEDS = {
    "crash": (Outcome.CRASH, "SIGSEGV"),
    "abort": (Outcome.CRASH, "SIGABRT"),
    "exit": (Outcome.CRASH, "exited with code 3"),
    "kill": (Outcome.MEMORY, "SIGKILL"),
    "memory": (Outcome.MEMORY, "more than the limit of 300 MiB"),
    "hang": (Outcome.HANG, "no progress for 2 s"),
    "garbage": (Outcome.GARBAGE, "expected a message"),
    "unfit": (Outcome.GARBAGE, "Ran lacks 'outputs'"),
    "half": (Outcome.HANG, "no progress for 2 s"),
    "torn": (Outcome.CRASH, "exited with code 3"),
    "spin": (Outcome.HANG, "no progress for 2 s"),
    "brood": (Outcome.MEMORY, "more than the limit of 300 MiB"),
    "error": (Outcome.ERROR, "ValueError: the fake target was told to raise"),
    "unsupported": (Outcome.UNSUPPORTED, "NotImplementedError"),
}


# Those that have to be waited for, or started, wait and start side by side.
HANGS = tuple(name for name, (outcome, _) in MISDEEDS.items() if outcome is Outcome.HANG)
GROUPS = [HANGS, *((name,) for name in MISDEEDS if name not in HANGS)]


@pytest.mark.parametrize("misdeeds", GROUPS, ids=" ".join)
@pytest.mark.slow
def test_a_misdeed_is_an_outcome_with_its_layer_and_the_worker_is_replaced(
    fake_model: Path, misdeeds: tuple[str, ...]
) -> None:
    bad = [fake(misdeed, f"{misdeed}:d2") for misdeed in misdeeds]
    limits = IMPATIENT if set(misdeeds) & set(HANGS) else LIMITS
    with LocalPool([fake("honest"), *bad], limits=limits) as pool:
        pool.start()
        # The second request finds a living worker, not the corpse of the first.
        for runs in (run_once(pool, fake_model), run_once(pool, fake_model)):
            assert runs["honest"].ok
            for misdeed in misdeeds:
                outcome, says = MISDEEDS[misdeed]
                assert (runs[misdeed].outcome, runs[misdeed].layer) == (outcome, "d2")
                assert says in runs[misdeed].message
        # What hung is not asked again: it would cost the same wait.
        died = {name for name in misdeeds if MISDEEDS[name][0].is_death} - set(HANGS)
        assert pool.restarts == {name: int(name in died) for name in pool.targets}


@pytest.mark.slow
@pytest.mark.usefixtures("_started")
def test_misdeeds_of_workers_that_were_started_are_the_same(fake_model: Path) -> None:
    together = ("crash", "spin")
    test_a_misdeed_is_an_outcome_with_its_layer_and_the_worker_is_replaced(fake_model, together)


def test_a_flood_on_standard_output_neither_blocks_nor_fills_memory(fake_model: Path) -> None:
    with LocalPool([fake("honest"), fake("loud", "flood:d1")], limits=LIMITS) as pool:
        pool.start()
        runs = run_once(pool, fake_model)
        assert runs["loud"].ok
        loud, honest = (runs[name].reply.outputs.arrays[0] for name in ("loud", "honest"))
        np.testing.assert_array_equal(loud, honest)


@pytest.mark.slow
def test_slow_is_not_stuck(fake_model: Path) -> None:
    """Five layers of 0.6 s each: every step forward renews a patience of two seconds."""
    with LocalPool([fake("slow", "slow:every")], limits=IMPATIENT) as pool:
        pool.start()
        run = run_once(pool, fake_model)["slow"]
        assert run.ok, run.message
        assert run.seconds > IMPATIENT.silence_seconds


@pytest.mark.slow
def test_a_worker_that_waits_for_a_processor_does_not_hang(fake_model: Path) -> None:
    """Six share one core: the limit of a second is passed by what is computed in 0.4 of them."""
    limits = replace(LIMITS, silence_seconds=1)
    core = {min(os.sched_getaffinity(0))}
    stuck = ("hang", "spin", "loop")
    targets = [fake("honest", "toil:d2"), *(fake(name, f"{name}:d2") for name in stuck)]
    rivals = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        with LocalPool(targets, limits=limits, jobs=len(targets)) as pool:
            pool.start()
            workers = [process.pid for process in pool._processes.values()]
            for pid in (*workers, *(rival.pid for rival in rivals)):
                os.sched_setaffinity(pid, core)
            runs = run_once(pool, fake_model)
    finally:
        for rival in rivals:
            rival.kill()
            rival.wait()
    assert runs["honest"].ok, runs["honest"].message
    assert runs["honest"].seconds > limits.silence_seconds
    for name in stuck:
        assert (runs[name].outcome, runs[name].layer) == (Outcome.HANG, "d2")
    assert "s in a queue for a processor; stopped" in runs["loop"].message


def test_a_process_that_ends_while_one_looks_has_no_shares(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()  # its threads are gone already
    task = tmp_path / "8" / "task"
    (task / "80").mkdir(parents=True)
    (task / "81").mkdir()  # gone, too
    (task / "80" / "schedstat").write_text("5 7 1\n")
    assert shares_of([7, 8, 9], tmp_path) == {"80": (5, 7)}


def test_a_queue_for_a_processor_counts_where_nothing_of_a_worker_runs() -> None:
    second = 10**9
    queue = Queue(began=0.0)
    queue.look(0.0, {"1": (5 * second, 7 * second)})  # before its time
    assert queue.seconds == 0
    queue.look(4.0, {"1": (6 * second, 10 * second)})
    assert queue.seconds == 3
    queue.look(8.0, {"1": (6 * second, 10 * second)})  # it slept
    assert queue.seconds == 3
    queue.look(12.0, {"2": (4 * second, 9 * second)})  # a new thread; the other one has ended
    assert queue.seconds == 7  # five of twelve seconds were its own
    queue.look(16.0, {"2": (12 * second, 30 * second)})  # threads wait for what others of it use
    assert queue.seconds == 3


@pytest.mark.usefixtures("_started")
@pytest.mark.slow
def test_no_process_survives_the_pool() -> None:
    with LocalPool([fake("one"), fake("stuck", "hang:d1")], limits=LIMITS) as pool:
        pool.start()
        pids = [process.pid for process in pool._processes.values()]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.slow
def test_results_of_other_targets_stand_beside_a_crash(fake_model: Path, fake_data: Path) -> None:
    targets = (fake("a"), fake("b"), fake("dead", "crash:relu"))
    checked = run_check(Job(fake_model, targets, data=fake_data, limits=LIMITS))
    (finding,) = checked.findings
    assert (finding.kind, finding.accused, finding.triage) == ("crash", "dead", "bug")
    assert finding.layer is not None
    assert finding.layer.name == "relu"
    assert [pair.targets for pair in checked.comparisons] == [("a", "b")]


def test_a_process_that_another_thread_has_waited_for_is_over() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitpid(child.pid, 0)
        assert child.returncode is None
        assert _has_ended(child)
