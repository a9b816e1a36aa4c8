"""The typed wire, and the pool around it: what crosses, what is refused, who waits for whom."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from conftest import fake
from outvote.bench.reader import read_file, require_started
from outvote.core import codec
from outvote.core.blackbox import BlackBox
from outvote.core.blobs import BlobStore
from outvote.core.cuts import one_layer
from outvote.core.errors import ProtocolError, UsageError
from outvote.core.model import Layer, Model
from outvote.core.outputs import Outputs
from outvote.core.protocol import (
    OPERATIONS,
    CallLayer,
    File,
    Hello,
    OpenSession,
    Ran,
    Read,
    Request,
    RunModel,
    ScriptText,
    Start,
    StepLayer,
    TrainModel,
)
from outvote.core.states import State
from outvote.core.target import Outcome, Run
from outvote.core.train_protocol import PullBack, TrainSteps
from outvote.core.wire import Channel, Silence, framed
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run import patience, process
from outvote.run.folder import OwnedFolder
from outvote.run.local import LocalPool
from outvote.run.patience import SharedPatience
from outvote.run.pool import asker
from outvote.run.process import Limits, Process
from outvote.run.queued import Shares
from outvote.run.scripts import script_of
from outvote.run.settle import settled
from outvote.targets.choose import find_target
from outvote.worker.main import Context, Refused
from outvote.worker.scripts import run_script

SHORT = Limits(start_seconds=60, silence_seconds=2)


@pytest.fixture
def pool() -> Iterator[LocalPool]:
    with LocalPool([fake("a"), fake("b")], limits=SHORT) as opened:
        opened.start()
        yield opened


def run_of(pool: LocalPool, path: Path, name: str = "a") -> RunModel:
    model = read_file(pool, name, path).reply.model
    inputs = (pool.blobs.put(np.ones((3, 4), np.float32)),)
    return RunModel(model=model, inputs=inputs, batch=3, steps=len(model.layers))


# What crosses.


def test_every_request_and_reply_survives_the_wire() -> None:
    """A class whose annotations the wire cannot carry fails here, and not in a user's hands."""
    for kind in (*OPERATIONS.values(), *(k.reply for k in OPERATIONS.values())):
        codec.coder(kind)
    state = State(np.ones((2, 3), np.float32), np.ones(2, bool), "bfloat16")
    sent = StepLayer(layer="d", given=(state, State(np.arange(3))), steps=4)
    back = codec.read(StepLayer, *codec.written(sent))
    assert (back.layer, back.steps) == ("d", 4)
    assert back.given is not None
    assert [s.dtype for s in back.given] == ["bfloat16", "int64"]
    np.testing.assert_array_equal(back.given[0].mask, state.mask)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "Ran lacks 'outputs'"),
        ([], "Ran is a table"),
        ({"outputs": {"arrays": [7], "dtypes": []}}, "one of 1 arrays; received '7'"),
        ({"outputs": {"arrays": [True], "dtypes": []}}, "one of 1 arrays"),
        ({"outputs": {"arrays": [0], "dtypes": [5]}}, "Ran.outputs.dtypes is a text"),
        ({"outputs": {"arrays": [0], "dtypes": ["f"]}, "cache_hits": "3"}, "is a whole number"),
        ({"outputs": {"arrays": [0], "dtypes": ["f"]}, "more": 1}, "Ran has no field 'more'"),
    ],
)
def test_what_does_not_fit_is_no_reply(data: Any, says: str) -> None:
    with pytest.raises(ProtocolError, match=says):
        codec.read(Ran, data, [np.zeros(1)])


def test_what_is_no_request_is_refused_with_a_sentence(
    pool: LocalPool, fake_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = run_of(pool, fake_model)
    plain = codec.written

    def spoilt(value: Any) -> Any:
        data, arrays = plain(value)
        return {**data, "batch": "many"} if isinstance(value, RunModel) else data, arrays

    monkeypatch.setattr(codec, "written", spoilt)
    run = pool.ask("a", request)
    assert (run.outcome, run.refused) == (Outcome.ERROR, True)
    assert run.message == "this is no request: RunModel.batch is a whole number; received 'many'"
    monkeypatch.undo()
    assert pool.ask("a", request).ok  # and the worker goes on


def test_an_operation_that_a_worker_does_not_have_is_a_gap_with_its_name(pool: LocalPool) -> None:
    empty = TrainModel(
        model=_one_dense(),
        inputs=(),
        labels=(),
        tests=(),
        epochs=1,
        batch=1,
        learning_rate=0.1,
        seed=0,
    )
    run = pool.ask("a", empty)
    assert run.outcome is Outcome.UNSUPPORTED
    assert "the fake target cannot train models" in run.message


def _one_dense() -> Model:
    layer = Layer("d", "ReLU", {}, args=[{"$ref": ["x", 0]}])
    return one_layer("keras", layer, [State(np.ones((2, 3), np.float32))])[0]


@pytest.mark.parametrize("name", ["keras==2.3.1/theano", "mxnet"])
def test_a_classic_target_says_that_it_makes_no_layers(name: str) -> None:
    target = find_target(name, BUILT_IN)
    assert not target.can("make")
    assert not target.can("read")
    assert target.can("step")


def test_no_path_of_the_driver_crosses(pool: LocalPool, fake_model: Path) -> None:
    message = json.dumps(codec.written(Read(file=File(fake_model.name, "0" * 64)))[0])
    assert str(fake_model.parent) not in message
    (fake_model.parent / "gone").mkdir()
    request = read_file(pool, "a", fake_model)
    fake_model.unlink()
    assert request.reply.model.layers[0].name == "d1"


def test_a_bfloat16_tensor_stays_one_in_a_model_of_its_own() -> None:
    """NumPy has no such type: what is told of it must not get lost between two targets."""
    layer = Layer("add", "Add", {}, args=[[{"$ref": ["a", 0]}, {"$ref": ["b", 0]}]])
    tensor = State(np.ones((2, 3), np.float32), dtype="bfloat16")
    model, arrays = one_layer("keras", layer, [tensor, State(np.ones((2, 3), np.float32))])
    assert [item.dtype for item in model.inputs] == ["bfloat16", "float32"]
    assert State.fed(arrays[0], model.inputs[0]).dtype == "bfloat16"
    assert Outputs.of([tensor]).dtypes == ("bfloat16",)


@pytest.mark.parametrize("misdeed", ["complex", "text"])
def test_results_that_cannot_cross_are_a_gap_and_no_crash(misdeed: str, fake_model: Path) -> None:
    with LocalPool([fake("bad", f"{misdeed}:soft")], limits=SHORT) as opened:
        run = opened.ask("bad", run_of(opened, fake_model, "bad"))
        assert run.outcome is Outcome.UNSUPPORTED
        assert "outvote cannot take over this result" in run.message
        assert opened.ask("bad", run_of(opened, fake_model, "bad")).outcome is Outcome.UNSUPPORTED
        assert opened.restarts["bad"] == 0


def test_numbers_of_numpy_in_a_configuration_cross() -> None:
    (head,) = framed({"config": {"rate": np.float32(0.5), "sizes": np.arange(2), "n": np.int64(3)}})
    told = json.loads(bytes(head)[16:])["message"]["config"]
    assert told == {"rate": 0.5, "sizes": [0, 1], "n": 3}
    with pytest.raises(ProtocolError, match="cannot be sent"):
        framed({"config": object()})


# The user's scripts.


def test_a_script_brings_the_modules_beside_it(tmp_path: Path, fake_model: Path) -> None:
    (tmp_path / "helper.py").write_text("from deeper import VALUE\n")
    (tmp_path / "deeper.py").write_text("VALUE = 7\n")
    (tmp_path / "unrelated.py").write_text("raise SystemExit\n")
    main = tmp_path / "setup.py"
    main.write_text("import os\nimport helper\nassert helper.VALUE == 7\n")
    script = script_of(main, BlobStore(tmp_path / ".blobs"))
    assert (script.name, set(script.modules)) == ("setup.py", {"helper.py", "deeper.py"})
    assert not script.files


@pytest.fixture
def run_as_copy(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Run a text as the setup script of a folder with data, the way that workers do."""
    beside = tmp_path / "beside"
    (beside / "tables").mkdir(parents=True)
    (beside / "one.bin").write_bytes(bytes(range(256)))
    (beside / "empty.txt").touch()
    (beside / "tables" / "two.txt").write_text("2")
    (beside / ".secret").write_text("s")
    (beside / "helper.py").write_text("raise SystemExit\n")

    def run(text: str) -> dict[str, Any]:
        main = beside / "setup.py"
        main.write_text(text)
        folder = tmp_path / "worker"
        folder.mkdir(exist_ok=True)
        blobs = BlobStore(tmp_path / "blobs")
        script = codec.read(ScriptText, *codec.written(script_of(main, blobs)))
        blobs.keep_only(set())  # as campaigns do between mutants
        settings = Start("", "", "", False, script, None, str(blobs.folder), str(folder))
        return run_script(script, Context(settings), "setup script", "__main__")

    return run


def test_a_script_finds_the_files_of_its_folder_beside_it(
    run_as_copy: Callable[[str], dict[str, Any]],
) -> None:
    found = run_as_copy(
        "from pathlib import Path\n"
        "here = Path(__file__).parent\n"
        "one = here.joinpath('one.bin').read_bytes()\n"
        "listed = sorted(p.relative_to(here).as_posix() for p in here.rglob('*'))\n"
    )
    assert found["one"] == bytes(range(256))
    assert found["listed"] == (
        ["empty.txt", "helper.py", "one.bin", "setup.py", "tables", "tables/two.txt"]
    )


@pytest.mark.parametrize(
    "text",
    [
        "open(__file__.replace('setup.py', 'none.npy'))",
        "import os\nopen(os.path.join(os.path.dirname(__file__), os.pardir, 'elsewhere.npy'))",
        "import sys\nopen(sys.path[0] + '/one.bin')",
    ],
)
def test_a_file_that_did_not_come_along_is_named_with_the_remedy(
    text: str, run_as_copy: Callable[[str], dict[str, Any]]
) -> None:
    with pytest.raises(Refused, match=r"setup\.py failed with FileNotFoundError: .*'; the script "
                       "runs as a copy, .* keep the file in that folder"):  # fmt: skip
        run_as_copy(text)


def test_a_file_that_is_missing_elsewhere_is_an_error_like_others(
    run_as_copy: Callable[[str], dict[str, Any]],
) -> None:
    with pytest.raises(Refused, match=r"'/none/such'$"):
        run_as_copy("open('/none/such')")


@pytest.mark.parametrize("limit", ["_MOST_FILES", "_MOST_BYTES"])
def test_a_folder_that_is_too_large_to_go_along_is_told(
    limit: str, run_as_copy: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"outvote.run.scripts.{limit}", 3)
    run_as_copy("pass")  # it needs nothing of its folder
    with pytest.raises(UsageError, match=r"setup\.py says __file__.* in a folder of their own"):
        run_as_copy("print(__file__)")


@pytest.mark.frameworks
def test_a_setup_script_reads_what_lies_beside_it(tmp_path: Path) -> None:
    np.save(tmp_path / "table.npy", np.arange(3))
    script = tmp_path / "setup.py"
    load = "import numpy, pathlib\nnumpy.load(pathlib.Path(__file__).with_name({!r}))\n"
    script.write_text(load.format("table.npy"))
    (tmp_path / "missing.py").write_text(load.format("none.npy"))
    whole = replace(BUILT_IN["numpy"], name="whole", setup=script)
    broken = replace(whole, name="broken", setup=tmp_path / "missing.py")
    with LocalPool([whole, broken]) as opened:
        hellos = opened.start()
    assert hellos["whole"].ok, hellos["whole"].message
    assert "keep the file in that folder" in hellos["broken"].message


def test_a_script_stays_as_it_was_for_workers_that_start_again(
    tmp_path: Path, fake_model: Path
) -> None:
    """A campaign does not change its targets because somebody edits a file."""
    main = tmp_path / "setup.py"
    main.write_text("first")
    with LocalPool([replace(fake("a"), setup=main)], limits=SHORT) as opened:
        assert opened.start()["a"].ok
        main.write_text("second")
        told = opened._script(main)
        assert told is not None
        assert told.text == "first"


def test_a_target_that_is_added_takes_the_place_of_one_of_its_name(fake_model: Path) -> None:
    with LocalPool([fake("a")], limits=SHORT) as opened:
        question = run_of(opened, fake_model)
        assert opened.ask("a", question).ok
        opened.add(fake("a", misdeed="error:d2"))
        assert opened.ask("a", question).outcome is Outcome.ERROR


# Nothing in the current folder runs.


@pytest.mark.slow
def test_workers_import_nothing_from_the_current_folder(
    tmp_path: Path, fake_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "importlib", "types", "numpy", "socket"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'owned')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    started = replace(fake("a"), python=Path(sys.executable))  # and not divided off another
    with LocalPool([started], limits=SHORT) as opened:
        assert opened.ask("a", run_of(opened, fake_model)).ok
    assert not (tmp_path / "owned").exists()


# Frames.


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), theirs


def test_a_frame_that_comes_in_two_halves_is_read_whole(
    ends: tuple[Channel, socket.socket],
) -> None:
    """Patience ends in the middle and is renewed: the next look goes on where this one stopped."""
    channel, raw = ends
    parts = framed({"op": "x"}, [np.arange(1000)])
    data = b"".join(bytes(part) for part in parts)
    for cut in (3, 20, len(data) // 2, len(data) - 1):
        raw.sendall(data[:cut])
        with pytest.raises(Silence):
            channel.receive(lambda: 0.0)
        raw.sendall(data[cut:])
        message, arrays = channel.receive(lambda: 0.0)
        assert message == {"op": "x"}
        np.testing.assert_array_equal(arrays[0], np.arange(1000))


def test_a_peer_that_does_not_read_is_not_waited_for(ends: tuple[Channel, socket.socket]) -> None:
    channel, _ = ends
    with pytest.raises(Silence):
        channel.send({}, [np.zeros(10 << 20, np.uint8)], lambda: 0.0)


@pytest.mark.slow
def test_a_worker_that_stopped_reading_hangs_also_with_a_large_request(pool: LocalPool) -> None:
    model = _one_dense()
    os.kill(pool._processes["a"].pid, signal.SIGSTOP)
    large = State(np.zeros((1 << 20, 3), np.float32))
    run = pool.ask("a", OpenSession(model=model, inputs=(large,)))
    assert run.outcome is Outcome.HANG
    assert pool.ask("b", OpenSession(model=model, inputs=(large,))).ok


# Patience.


def test_patience_follows_what_the_others_needed() -> None:
    shared = SharedPatience(300.0)
    slow = replace(fake("slow"), costs=frozenset({"compiles_slowly"}))
    assert shared.seconds(fake("b")) == 300
    shared.note(Run("a", Outcome.OK, seconds=0.1))
    assert shared.seconds(fake("b")) == patience._LEAST == 30
    shared.note(Run("a", Outcome.OK, seconds=4.0))
    assert shared.seconds(fake("b")) == 80
    shared.note(Run("a", Outcome.OK, seconds=100.0))
    assert shared.seconds(fake("b")) == 300  # never more than the user allows
    assert SharedPatience(5.0).seconds(fake("b")) == 5
    assert shared.seconds(slow) == 300


def test_graphs_of_whole_models_may_compile_as_long_as_the_user_allows() -> None:
    compiled = replace(fake("graph"), costs=frozenset({"compiles"}))
    for request, seconds in ((PullBack, 300), (TrainSteps, 300), (RunModel, 30)):
        shared = SharedPatience(300.0, request.compiles)
        shared.note(Run("a", Outcome.OK, seconds=0.1))
        assert (shared.seconds(compiled), shared.seconds(fake("eager"))) == (seconds, 30)


def test_signs_of_life_are_waited_for_as_long_as_the_user_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A patience of 30 s, of which the user allows 100 between two steps."""
    now, queued = 0.0, 0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    box = BlackBox(tmp_path / "box")

    class Boxed:
        position = property(lambda self: box.read())

        def check_memory(self) -> None:
            pass

        def shares(self) -> Shares:
            return {"1": (0, queued)}

    watch = process._Watch(cast(Process, Boxed()), lambda: 30.0, 1, 100.0)
    assert watch.deadline() == 30
    for now in (20.0, 45.0, 60.0):
        box.live()
        watch.tick()
        assert watch.deadline() == now + 30
    now = 85.0
    assert not watch.moved()  # a sign that was heard of before is none
    box.live()
    assert watch.moved()
    assert watch.deadline() == watch.limit == 100
    box.note(1, 1)
    watch.tick()
    assert watch.deadline() == now + 30  # a step forward begins anew
    now = 190.0
    box.live()
    assert not watch.moved()
    began = now = 200.0
    watch = process._Watch(cast(Process, Boxed()), lambda: 30.0, 0, 100.0)
    watch.tick()
    for waited in (8, 20, 1000):  # in a queue for a processor, all of it
        queued, now = waited * 10**9, began + waited
        watch.tick()
        assert watch.deadline() == min(began + waited + 30, began + 300)
    assert watch.told == "30 s, besides 1000 s in a queue for a processor"


@pytest.mark.slow
def test_one_that_hangs_is_not_waited_for_as_long_as_the_user_allows(
    fake_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_LEAST", 1.0)
    limits = Limits(start_seconds=60, silence_seconds=100_000)
    with LocalPool([fake("a"), fake("stuck", "spin:d1")], limits=limits) as opened:
        opened.start()
        runs = opened.ask_all(("a", "stuck"), run_of(opened, fake_model))
        assert runs["a"].ok
        assert (runs["stuck"].outcome, runs["stuck"].layer) == (Outcome.HANG, "d1")


# Sessions and processes.


def test_a_session_that_went_with_its_worker_is_told_so(pool: LocalPool) -> None:
    given = State(np.ones((2, 3), np.float32))
    opening = OpenSession(model=_one_dense(), inputs=(given,))
    assert pool.ask("a", CallLayer(layer="d", given=(given,))).outcome is Outcome.LOST
    assert pool.ask("a", opening).ok
    assert pool.ask("a", CallLayer(layer="d", given=(given,))).ok
    pool.recycle("a")
    run = pool.ask("a", CallLayer(layer="d", given=(given,)))
    assert run.outcome is Outcome.LOST
    assert "the session was lost" in run.message


def test_a_worker_that_dies_once_it_was_found_alive_is_not_replaced_within_a_session(
    pool: LocalPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fresh one knows no session: it would fail, and be accused of it."""
    given = State(np.ones((2, 3), np.float32))
    opening, request = (
        OpenSession(model=_one_dense(), inputs=(given,)),
        CallLayer(layer="d", given=(given,)),
    )
    assert pool.ask("a", opening).ok
    alive = vars(Process)["alive"].fget

    def alive_for_the_last_time(process: Process) -> bool:
        monkeypatch.setattr(Process, "alive", property(alive))
        os.kill(process.pid, signal.SIGKILL)
        while alive(process):
            pass
        return True

    monkeypatch.setattr(Process, "alive", property(alive_for_the_last_time))
    run = pool.ask("a", request)
    assert run.outcome.is_death or run.outcome is Outcome.LOST, run
    assert settled(asker(pool, "a"), request, run, opening).ok
    assert pool.ask("b", opening).ok


def test_an_interpreter_that_is_missing_is_told(tmp_path: Path) -> None:
    missing = replace(fake("a"), python=tmp_path / "no-python")
    with LocalPool([missing]) as opened:
        hellos = opened.start()
        with pytest.raises(UsageError, match=r"its interpreter .*no-python could not be started"):
            require_started(hellos)


def test_another_protocol_is_noticed(fake_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "PROTOCOL", 99)
    with LocalPool([fake("a")], limits=SHORT) as opened:
        run = opened.start()["a"]
    assert not run.ok
    assert "of the protocol, not 99" in run.message


def test_a_number_that_may_be_anothers_by_now_is_not_shot_at(
    pool: LocalPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = pool._processes["a"]
    os.kill(worker.pid, signal.SIGKILL)
    while worker.alive:
        threading.Event().wait(0.01)
    shot: list[int] = []
    plain = os.killpg

    def noted(pid: int, number: int) -> None:
        shot.append(pid)
        plain(pid, number)

    monkeypatch.setattr(os, "killpg", noted)
    worker.kill()  # the system keeps the number until now
    worker.kill()
    worker.end()
    assert shot == [worker.pid]


@pytest.mark.parametrize(
    ("code", "outcome", "says"),
    [
        (-int(signal.SIGSEGV), Outcome.CRASH, "SIGSEGV"),
        (-(int(signal.SIGRTMIN) + 3), Outcome.CRASH, "signal 37"),
        (-int(signal.SIGKILL), Outcome.MEMORY, "SIGKILL"),
        (7, Outcome.CRASH, "code 7"),
    ],
)
def test_every_death_has_a_cause(code: int, outcome: Outcome, says: str) -> None:
    found, text = process._cause_of_death(code)
    assert found is outcome
    assert says in text


def test_names_that_no_file_can_hold_are_noted(tmp_path: Path) -> None:
    box = BlackBox(tmp_path / "box")
    box.note(1, 2, "lone \udcff surrogate")
    assert box.read().layer == "lone ? surrogate"


def test_who_raises_leaves_nobody_at_work(pool: LocalPool, fake_model: Path) -> None:
    finished: list[str] = []

    def done(run: Run[Ran]) -> None:
        finished.append(run.target)
        raise RuntimeError("told to")

    with pytest.raises(RuntimeError, match="told to"):
        pool.ask_all(("a", "b"), run_of(pool, fake_model), done)
    assert sorted(finished) == ["a", "b"]


def test_a_worker_takes_its_folder_with_it(pool: LocalPool, fake_model: Path) -> None:
    folder = pool._folder.path / "workers"
    before = set(folder.iterdir())
    pool.recycle("a")
    assert pool.ask("a", run_of(pool, fake_model)).ok
    assert len(set(folder.iterdir())) == len(before) == 2


# Folders of drivers that were killed.


def test_the_folder_of_a_killed_driver_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import os, signal, tempfile\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "from outvote.run.folder import OwnedFolder\n"
        "OwnedFolder().path.joinpath('weights').write_bytes(bytes(100))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    (tmp_path / "outvote-of-another-program").mkdir()
    living = OwnedFolder()
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(list(tmp_path.glob("outvote-*"))) == 3
    with OwnedFolder() as own:
        left = {path.name for path in tmp_path.glob("outvote-*")}
        assert left == {own.name, living.path.name, "outvote-of-another-program"}
    living.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["outvote-of-another-program"]


def test_requests_say_what_they_do() -> None:
    kinds: list[type[Request[Any]]] = list(OPERATIONS.values())
    assert all(kind.deed and kind.__doc__ for kind in kinds)
    assert {kind.within for kind in kinds} == {"", *(k.opens for k in kinds)}
    assert codec.read(Hello, *codec.written(_hello())) == _hello()


def _hello() -> Hello:
    return Hello(versions={"keras": "3"}, precision={"x64": False}, python="3.11", platform="L")
