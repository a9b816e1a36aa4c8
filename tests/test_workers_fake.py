"""Whatever a worker does is a Run with an outcome; it is replaced, and other results stand."""

from __future__ import annotations

import subprocess
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
from outvote.run.pool import Pool
from outvote.run.process import Limits

LIMITS = Limits(start_seconds=60, silence_seconds=60, memory_bytes=300 << 20)
IMPATIENT = replace(LIMITS, silence_seconds=3)


@pytest.fixture
def _started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fakes start as workers do in production, not as other tests have them (tests/zygote.py)."""
    monkeypatch.setattr("outvote.run.process.subprocess", subprocess)


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
    "hang": (Outcome.HANG, "no progress for 3 s"),
    "garbage": (Outcome.GARBAGE, "expected a message"),
    "unfit": (Outcome.GARBAGE, "Ran lacks 'outputs'"),
    "half": (Outcome.HANG, "no progress for 3 s"),
    "torn": (Outcome.CRASH, "exited with code 3"),
    "spin": (Outcome.HANG, "no progress for 3 s"),
    "brood": (Outcome.MEMORY, "more than the limit of 300 MiB"),
    "error": (Outcome.ERROR, "ValueError: the fake target was told to raise"),
    "unsupported": (Outcome.UNSUPPORTED, "NotImplementedError"),
}


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_a_misdeed_is_an_outcome_with_its_layer_and_the_worker_is_replaced(
    fake_model: Path, misdeed: str
) -> None:
    outcome, says = MISDEEDS[misdeed]
    limits = IMPATIENT if outcome is Outcome.HANG else LIMITS
    with LocalPool([fake("honest"), fake("bad", f"{misdeed}:d2")], limits=limits) as pool:
        pool.start()
        runs = run_once(pool, fake_model)
        assert runs["honest"].ok
        assert runs["bad"].outcome is outcome
        assert says in runs["bad"].message
        assert runs["bad"].layer == "d2"
        # The next request finds a living worker, not the corpse of the last.
        again = run_once(pool, fake_model)
        assert again["bad"].outcome is outcome
        assert again["honest"].ok
        assert again["bad"].layer == "d2"
        # What hung is not asked again: it would cost the same wait.
        died = outcome.is_death and outcome is not Outcome.HANG
        assert pool.restarts == {"honest": 0, "bad": int(died)}


@pytest.mark.parametrize("misdeed", ["crash", "spin"])
@pytest.mark.usefixtures("_started")
def test_a_misdeed_of_a_worker_that_was_started_is_the_same(fake_model: Path, misdeed: str) -> None:
    test_a_misdeed_is_an_outcome_with_its_layer_and_the_worker_is_replaced(fake_model, misdeed)


def test_a_flood_on_standard_output_neither_blocks_nor_fills_memory(fake_model: Path) -> None:
    with LocalPool([fake("honest"), fake("loud", "flood:d1")], limits=LIMITS) as pool:
        pool.start()
        runs = run_once(pool, fake_model)
        assert runs["loud"].ok
        loud, honest = (runs[name].reply.outputs.arrays[0] for name in ("loud", "honest"))
        np.testing.assert_array_equal(loud, honest)


def test_slow_is_not_stuck(fake_model: Path) -> None:
    """Five layers of a second each: every step forward renews a patience of three."""
    with LocalPool([fake("slow", "slow:every")], limits=IMPATIENT) as pool:
        pool.start()
        run = run_once(pool, fake_model)["slow"]
        assert run.ok, run.message
        assert run.seconds > IMPATIENT.silence_seconds


@pytest.mark.usefixtures("_started")
def test_no_process_survives_the_pool() -> None:
    with LocalPool([fake("one"), fake("stuck", "hang:d1")], limits=LIMITS) as pool:
        pool.start()
        pids = [process.pid for process in pool._processes.values()]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_results_of_other_targets_stand_beside_a_crash(fake_model: Path, fake_data: Path) -> None:
    targets = (fake("a"), fake("b"), fake("dead", "crash:relu"))
    checked = run_check(Job(fake_model, targets, data=fake_data, limits=LIMITS))
    (finding,) = checked.findings
    assert (finding.kind, finding.accused, finding.triage) == ("crash", "dead", "bug")
    assert finding.layer is not None
    assert finding.layer.name == "relu"
    assert [pair.targets for pair in checked.comparisons] == [("a", "b")]
