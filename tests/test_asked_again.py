"""Who is asked again when a worker dies, how long one waits, and what goes with a script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import fake
from outvote.core.blobs import BlobStore
from outvote.core.errors import UsageError
from outvote.core.protocol import ListKinds, Read, ScriptText
from outvote.core.target import Outcome, Run
from outvote.run.patience import SharedPatience
from outvote.run.pool import asker
from outvote.run.scripts import script_of
from outvote.run.settle import RETRIES, ask_all_settled, ask_each_settled, ask_settled, settled

OPENING: Any = ListKinds()
REQUEST: Any = Read.__new__(Read)


def ran(outcome: Outcome, **more: Any) -> Run[Any]:
    return Run("t", outcome, **more)


class Worker:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self, *answers: Run[Any]) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    def __call__(self, request: Any) -> Run[Any]:
        self.asked.append(request)
        return self.answers.pop(0)


OK, CRASH, HANG, LOST = (ran(o) for o in (Outcome.OK, Outcome.CRASH, Outcome.HANG, Outcome.LOST))


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.ERROR, Outcome.UNSUPPORTED, Outcome.HANG])
def test_what_is_no_death_stands_and_what_hung_is_not_waited_for_twice(outcome: Outcome) -> None:
    worker = Worker()
    run = ran(outcome)
    assert settled(worker, REQUEST, run) is run
    assert worker.asked == []


@pytest.mark.parametrize("outcome", [Outcome.CRASH, Outcome.MEMORY, Outcome.GARBAGE, Outcome.LOST])
def test_a_death_counts_if_it_repeats(outcome: Outcome) -> None:
    rose = Worker(OK)
    assert settled(rose, REQUEST, ran(outcome)) is OK
    died = Worker(*[CRASH] * RETRIES)
    assert settled(died, REQUEST, ran(outcome)) is CRASH
    assert len(died.asked) == RETRIES
    assert settled(Worker(CRASH, OK), REQUEST, ran(outcome)) is OK
    assert settled(Worker(HANG), REQUEST, ran(outcome)) is HANG  # and that is all


def test_a_session_is_opened_again_before_it_is_asked() -> None:
    worker = Worker(OK, CRASH, OK, OK)
    assert settled(worker, REQUEST, LOST, OPENING) is OK
    assert worker.asked == [OPENING, REQUEST, OPENING, REQUEST]


def test_a_session_that_cannot_be_opened_again_is_how_it_ended() -> None:
    no = ran(Outcome.ERROR, message="no memory")
    worker = Worker(no)
    found = settled(worker, REQUEST, CRASH, OPENING)
    assert (found.outcome, found.message) == (Outcome.ERROR, "no memory")
    assert worker.asked == [OPENING]
    again = Worker(CRASH, OK, OK)  # it died of the opening, and rose
    assert settled(again, REQUEST, CRASH, OPENING) is OK
    assert again.asked == [OPENING, OPENING, REQUEST]


class FewWorkers:
    """As much of a pool as is asked here."""

    def __init__(self, **workers: Worker) -> None:
        self.workers = workers

    def ask(self, name: str, request: Any) -> Run[Any]:
        return self.workers[name](request)

    def ask_all(self, names: Any, request: Any, done: Any) -> dict[str, Run[Any]]:
        found = {name: self.workers[name](request) for name in names}
        for run in found.values():
            done(run)
        return found

    def ask_each(self, names: Any, requests: Any) -> list[dict[str, Run[Any]]]:
        return [{name: self.workers[name](request) for name in names} for request in requests]


def test_each_of_several_workers_is_asked_again_by_itself() -> None:
    fine, rose = Worker(OK), Worker(CRASH, OK)
    pool: Any = FewWorkers(a=fine, b=rose)
    heard: list[Outcome] = []
    runs = ask_all_settled(pool, "ab", REQUEST, done=lambda run: heard.append(run.outcome))
    assert {name: run.outcome for name, run in runs.items()} == dict.fromkeys("ab", Outcome.OK)
    assert heard == [Outcome.OK, Outcome.CRASH, Outcome.OK]  # also of the one that rose
    assert (len(fine.asked), len(rose.asked)) == (1, 2)


def test_one_worker_and_several_questions_are_settled_too() -> None:
    alone: Any = FewWorkers(a=Worker(CRASH, CRASH, CRASH))
    assert ask_settled(alone, "a", REQUEST) is CRASH
    pool: Any = FewWorkers(a=Worker(OK, CRASH, OK))
    first, second = ask_each_settled(pool, "a", [REQUEST, OPENING])
    assert (first["a"], second["a"]) == (OK, OK)
    assert pool.workers["a"].asked == [REQUEST, OPENING, OPENING]
    once: Any = FewWorkers(a=Worker(OK))
    assert asker(once, "a")(REQUEST) is OK


# Patience.


@pytest.mark.parametrize(
    ("seconds", "costs", "patience"),
    [
        ((), (), 600.0),
        ((0.1,), (), 30.0),  # a busy machine is waited for all the same
        ((1.5,), (), 30.0),
        ((2.0,), (), 40.0),
        ((2.0, 5.0, 1.0), (), 100.0),
        ((100.0,), (), 600.0),  # never longer than the user allows
        ((1.0,), ("compiles_slowly",), 600.0),
        ((1.0,), ("compiles_for_minutes",), 600.0),
        ((1.0,), ("compiles",), 30.0),
    ],
)
def test_patience_is_twenty_times_what_the_slowest_needed(
    seconds: tuple[float, ...], costs: tuple[str, ...], patience: float
) -> None:
    shared = SharedPatience(600.0)
    for needed in seconds:
        shared.note(replace(OK, seconds=needed))
    shared.note(replace(CRASH, seconds=500.0))  # who failed sets no example
    assert shared.seconds(replace(fake("t"), costs=frozenset(costs))) == patience


# Scripts.


def script(folder: Path, text: str, others: Mapping[str, str] | None = None) -> ScriptText:
    """What a worker is told of a script, beside which these files lie."""
    for name, content in {"main.py": text, **(others or {})}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    return script_of(folder / "main.py", BlobStore(folder.parent / "blobs"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    return tmp_path / "scripts"


def test_a_script_takes_what_it_imports_of_its_folder_and_nothing_else(folder: Path) -> None:
    beside = {
        "one.py": "import two",
        "two.py": "import one",
        "three.py": "",
        "pack/__init__.py": "",
        "pack/part.py": "import three_quarters",
        "pack/beside.py": "from . import part",
    }
    found = script(folder, "import one, numpy\nfrom pack.part import x", beside)
    assert found.name == "main.py"
    assert set(found.modules) == set(beside) - {"three.py"}
    assert found.modules["one.py"] == "import two"
    assert found.files == {}


def test_a_script_that_says_file_takes_what_lies_beside_it(folder: Path) -> None:
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "secret").write_text("no")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_text("no")
    (folder / "data").mkdir()
    (folder / "data" / "w.bin").write_bytes(b"\x00\xff")
    found = script(folder, "import one; open(one.__file__)", {"one.py": "here = __file__"})
    assert set(found.files) == {"data/w.bin"}
    blob = BlobStore(folder.parent / "blobs").get(found.files["data/w.bin"])
    assert blob.tobytes() == b"\x00\xff"
    attribute = script(folder, "import one; open(one.__file__)", {"one.py": ""})
    assert attribute.files == {}  # the word alone, of a module, looks for nothing


def test_a_text_that_is_no_python_goes_as_it_is(folder: Path) -> None:
    found = script(folder, "this is no python = =", {"one.py": ""})
    assert (found.text, found.modules) == ("this is no python = =", {})
    (folder / "main.py").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"main\.py is no Python file: it is not UTF-8"):
        script_of(folder / "main.py", BlobStore(folder))


def test_a_library_goes_by_its_bytes(folder: Path) -> None:
    (folder / "ops.so").write_bytes(b"\x7fELF")
    found = script_of(folder / "ops.so", BlobStore(folder.parent / "blobs"))
    assert (found.text, list(found.files)) == ("", ["ops.so"])
    with pytest.raises(UsageError, match=r"none\.so, beside a script, could not be read: No such"):
        script_of(folder / "none.so", BlobStore(folder.parent / "blobs"))


def test_too_many_files_are_told_with_the_remedy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outvote.run.scripts._MOST_FILES", 3)
    for number in range(2):
        (folder / f"{number}.txt").write_text("x")
    assert set(script(folder, "__file__").files) == {"0.txt", "1.txt"}  # and itself: three
    (folder / "3.txt").write_text("x")
    with pytest.raises(UsageError, match=r"more than 3 of them, .* or do without __file__"):
        script(folder, "__file__")


def test_what_is_read_stays_when_the_file_changes(folder: Path) -> None:
    (folder / "w.bin").write_bytes(b"old")
    found = script(folder, "__file__")
    (folder / "w.bin").write_bytes(b"new")
    assert BlobStore(folder.parent / "blobs").get(found.files["w.bin"]).tobytes() == b"old"
