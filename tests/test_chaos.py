"""The pool under faults: workers shot, stopped and torn at any moment, and the driver killed.

No false accusation, no lost or doubled result, no orphan, no folder left for good, no endless wait.
OUTVOTE_FAULTS sets how many faults workers suffer (1000 for a long night).
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from conftest import fake
from outvote.bench.reader import read_file
from outvote.bench.steps import steps
from outvote.core.blackbox import BlackBox
from outvote.core.errors import ProtocolError
from outvote.core.protocol import R, Request, RunModel
from outvote.core.target import Run, Target
from outvote.core.wire import Channel, Closed, Silence, framed
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.local import LocalPool
from outvote.run.patience import SharedPatience
from outvote.run.process import Limits
from outvote.run.settle import RETRIES, ask_all_settled, ask_each_settled

pytestmark = pytest.mark.slow
FAULTS = int(os.environ.get("OUTVOTE_FAULTS", "60"))
LIMITS = Limits(start_seconds=120, silence_seconds=60)
MOMENTS = ("before", "during", "after")
DEADLY = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM, signal.SIGRTMIN + 3)


class ShotPool(LocalPool):
    """A pool whose workers are shot before, during and after any request.

    A shot in every attempt at one request would be a death of the request: it is spared then.
    """

    def __init__(self, targets: Sequence[Target], seed: int) -> None:
        super().__init__(targets, limits=LIMITS)
        self._rng = random.Random(seed)
        self._quiet = Counter[str]()  # asks until a target may be shot again
        self.shots = Counter[str]()
        self.pids: set[int] = set()

    def _ask(
        self, name: str, request: Request[R], patience: SharedPatience, first: bool = False
    ) -> Run[R]:
        self._quiet[name] -= 1
        moment = self._rng.choice((*MOMENTS, "never"))
        if self._quiet[name] > 0:
            moment = "never"
        if moment != "never":
            self._quiet[name] = 2 * RETRIES
            self.shots[moment] += 1
        if moment == "before":
            self._shoot(name)
        late = threading.Timer(self._rng.random() * 0.02, self._shoot, [name])
        if moment == "during":
            late.start()
        run = super()._ask(name, request, patience, first)
        if moment == "during":
            late.join()
        if moment == "after":
            self._shoot(name)
        return run

    def _shoot(self, name: str) -> None:
        worker = self._processes.get(name)
        if worker is not None and worker.alive:
            self.pids.add(worker.pid)
            os.kill(worker.pid, self._rng.choice(DEADLY))


def shot_at(targets: Sequence[Target], path: Path, faults: int) -> Counter[str]:
    """Ask honest targets in all ways, under fire; what they answer is what they always answer.

    So often at least, and at every moment.
    """
    names = [target.name for target in targets]
    with LocalPool(targets, limits=LIMITS) as calm:
        model = read_file(calm, names[0], path).reply.model
        shape = (3, *(n or 1 for n in model.inputs[0].shape[1:]))
        x = np.random.default_rng(0).normal(size=shape).astype("float32")
        request = RunModel(model=model, inputs=(calm.blobs.put(x),), batch=3, steps=9)
        expected = {n: r.reply.outputs.arrays[0] for n, r in calm.ask_all(names, request).items()}
        layers = [layer.name for layer in model.layers]
    pool = ShotPool(targets, seed=1)
    with pool:
        model = _read_under_fire(pool, names[0], path)  # weights are blobs of this pool
        request = RunModel(model=model, inputs=(pool.blobs.put(x),), batch=3, steps=9)
        for turn in itertools.count():
            if sum(pool.shots.values()) >= faults and len(pool.shots) == len(MOMENTS):
                break
            if turn % 3 == 0:
                found = [ask_all_settled(pool, names, request)]
            elif turn % 3 == 1:
                found = ask_each_settled(pool, names, [request, request])
            else:
                _stepped_through(pool, model, x[:1], names, layers)
                found = []
            for runs in found:
                assert list(runs) == names
                for name, run in runs.items():
                    assert run.ok, f"{name} is accused: {run.outcome} {run.message}"
                    np.testing.assert_array_equal(run.reply.outputs.arrays[0], expected[name])
        living = {process.pid for process in pool._processes.values()}
    assert not [pid for pid in pool.pids | living if psutil.pid_exists(pid)]
    return pool.shots


def _read_under_fire(pool: ShotPool, name: str, path: Path) -> Any:
    run = read_file(pool, name, path)
    assert run.ok, run.message
    return run.reply.model


def _stepped_through(
    pool: LocalPool, model: Any, x: Any, names: Sequence[str], layers: Sequence[str]
) -> None:
    """Every layer of every target, once and in order, and nobody accused."""
    seen = []
    for step in steps(pool, model, [x], names[0], names[1:]):
        assert not step.failed, step.failed
        assert not step.lost, step.lost
        assert list(step.isolated) == list(names)
        first = step.isolated[names[0]].arrays[0]
        for name in names[1:]:
            np.testing.assert_allclose(step.isolated[name].arrays[0], first, rtol=1e-5, atol=1e-6)
        seen.append(step.layer.name)
    assert seen == list(layers)


def test_honest_targets_under_fire_are_accused_of_nothing(fake_model: Path) -> None:
    shots = shot_at([fake("a"), fake("b"), fake("c")], fake_model, FAULTS)
    assert sum(shots.values()) >= FAULTS


@pytest.mark.frameworks
def test_a_real_framework_under_fire_is_accused_of_nothing(keras_file: Any) -> None:
    path = keras_file(
        "model = keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.ReLU()])"
    )
    shot_at([BUILT_IN["numpy"], BUILT_IN["jax"]], path, 8)


# The channel alone: nothing but a message comes out of it, whatever goes in.


@pytest.mark.parametrize("seed", range(4))
def test_a_torn_and_spoilt_stream_gives_messages_or_is_refused(seed: int) -> None:
    """Frames in pieces, with pauses; then frames with wrong bytes, cut off, or in a flood."""
    rng = random.Random(seed)
    for number in range(250):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            channel = Channel(ours)
            array = np.arange(rng.randrange(50))
            data = b"".join(bytes(p) for p in framed({"number": number}, [array]))
            kind = rng.choice(("pieces", "spoilt", "cut", "flood"))
            if kind == "pieces":
                _pieces(channel, theirs, data, rng)
                continue
            sent = bytearray(data * 3 if kind == "flood" else data)
            if kind == "spoilt":
                sent[rng.randrange(len(sent))] ^= 1 << rng.randrange(8)
            theirs.sendall(sent[: rng.randrange(len(sent))] if kind == "cut" else sent)
            theirs.shutdown(socket.SHUT_WR)
            seen = _drained(channel)
            assert seen <= (3 if kind == "flood" else 1)
            assert seen == 3 or kind != "flood"


def _pieces(channel: Channel, raw: socket.socket, data: bytes, rng: random.Random) -> None:
    cuts = sorted({0, len(data), *(rng.randrange(len(data)) for _ in range(4))})
    for start, stop in itertools.pairwise(cuts):
        with pytest.raises(Silence):
            channel.receive(lambda: 0.0)
        raw.sendall(data[start:stop])
    message, arrays = channel.receive()
    assert len(arrays) == 1
    assert "number" in message


def _drained(channel: Channel) -> int:
    """How many messages come; the stream ends, or is refused."""
    for count in itertools.count():
        try:
            message, _ = channel.receive()
        except (Closed, ProtocolError):
            return count
        assert isinstance(message, dict)
    raise AssertionError("unreachable")


# The driver killed.

_DRIVER = """
import sys, tempfile
from dataclasses import replace
from pathlib import Path
import numpy as np
from outvote.bench.reader import read_model
from outvote.core.protocol import RunModel
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.local import LocalPool
tempfile.tempdir = sys.argv[1]
misdeeds = {"a": ":", "spins": "spin:d2", "hangs": "hang:d1"}
fakes = [replace(BUILT_IN["fake"], name=n, env={"OUTVOTE_FAKE": m}) for n, m in misdeeds.items()]
with LocalPool(fakes) as pool:
    print("up", flush=True)
    pool.start()
    print("started", flush=True)
    model, _ = read_model(pool, Path(sys.argv[2]), None)
    x = pool.blobs.put(np.ones((3, 4), np.float32))
    pool.ask_all(pool.targets, RunModel(model=model, inputs=(x,), batch=3, steps=9))
"""


@pytest.mark.parametrize("moment", ["up", "started", "asked"])
def test_a_killed_driver_leaves_no_worker_and_no_folder(
    moment: str, fake_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a worker that is stuck in C, with the interpreter's lock, while the driver dies."""
    command = [sys.executable, "-c", _DRIVER, str(tmp_path), str(fake_model)]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert driver.stdout is not None
    for line in driver.stdout:
        if line.strip() == ("started" if moment == "asked" else moment):
            break
    if moment == "asked":
        _wait_for(
            lambda: {"d1", "d2"} <= {BlackBox(box).read().layer for box in tmp_path.rglob("box")}
        )
    workers = psutil.Process(driver.pid).children(recursive=True)
    driver.kill()
    driver.wait()
    driver.stdout.close()
    _wait_for(lambda: all(map(_is_over, workers)))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def sweeps() -> bool:
        """A child that was just being forked holds the lock for the last time."""
        with LocalPool([]) as pool:
            return [p.name for p in tmp_path.glob("outvote-*")] == [pool._folder.path.name]

    _wait_for(sweeps)
    assert not list(tmp_path.glob("outvote-*"))


def _is_over(worker: psutil.Process) -> bool:
    """Dead, also when whoever has it now has not taken note of it."""
    try:
        return bool(worker.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _wait_for(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until, "it did not come true within a minute"
        time.sleep(0.01)
