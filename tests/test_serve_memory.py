"""What a workbench holds does not grow with findings, with threads, or with who looks."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest
from starlette.responses import HTMLResponse

from outvote.core.events import Started
from outvote.serve import parts, shelf
from outvote.serve.causes import Filter
from outvote.serve.parts import Parts
from outvote.serve.shelf import Shelf
from outvote.store import facts
from outvote.store.queries import ShortFinding
from outvote.store.store import Store
from test_serve import data_of
from test_store import row_of


def test_a_part_is_made_once_for_all_who_look() -> None:
    kept, made, together = Parts(), list[str](), Barrier(10)

    def make() -> HTMLResponse:
        made.append("made")
        return HTMLResponse(f"<p>{len(made)}</p>")

    def look(version: str) -> bytes:
        together.wait()
        return bytes(kept.shown("one", version, make).body)

    with ThreadPoolExecutor(10) as ten:
        assert set(ten.map(look, ["7"] * 10)) == {b"<p>1</p>"}
        assert set(ten.map(look, ["8"] * 10)) == {b"<p>2</p>"}


def test_of_parts_the_last_few_are_kept() -> None:
    kept, made = Parts(), list[str]()

    def look(key: str) -> None:
        kept.shown(key, "1", lambda: made.append(key) or HTMLResponse(key))  # type: ignore[func-returns-value]

    for number in range(parts._MOST + 1):
        look(str(number))
    look(str(parts._MOST))
    assert len(made) == parts._MOST + 1
    look("0")
    assert made[-1] == "0", "the oldest had gone"


def test_what_could_not_be_made_is_made_again() -> None:
    kept = Parts()

    def fail() -> HTMLResponse:
        raise ValueError("no template")

    with pytest.raises(ValueError, match="no template"):
        kept.shown("one", "1", fail)
    assert kept.shown("one", "1", lambda: HTMLResponse("there")).body == b"there"


def test_findings_come_into_the_table_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Store(tmp_path, create=True)) as store:
        store.note(facts.JOB, {"strategy": "random", "targets": ["a", "b"]})
        store.note(facts.CREATED, "2026-03-14T09:26:53+00:00")
        store.begin(Started("fuzz"))
        store.add(row_of(1))
        for number in range(25):
            store.found(f"{number:012x}", 1, 1.0, data_of(f"title {number}"))
    monkeypatch.setattr(shelf, "_AT_ONCE", 10)
    shown, sizes = Shelf([tmp_path], dict), list[int]()
    put = shown.causes.put

    def counted(place: str, created: float, findings: list[ShortFinding]) -> None:
        sizes.append(len(findings))
        put(place, created, findings)

    monkeypatch.setattr(shown.causes, "put", counted)
    shown.refresh()
    assert sizes == [10, 10, 5]
    assert shown.causes.find(Filter()).total == 25


@pytest.mark.slow
def test_the_table_of_causes_holds_no_more_than_its_cache() -> None:
    """Twenty thousand further findings, of a kilobyte each, in a process of its own."""
    grown = float(_told(_TABLE))
    assert grown < 8, f"{grown} MiB"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks glibc")
def test_threads_share_their_heaps() -> None:
    assert int(_told(_HEAPS)) <= 2


def _told(script: str) -> str:
    """What a process prints that runs this."""
    command = [sys.executable, "-c", script]
    here = Path(__file__).parent
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=here).stdout


_TABLE = """
import psutil
from outvote.serve.causes import Causes
from test_serve import found

table, held = Causes(), []
for number in range(0, 25_000, 500):
    table.put("here", 0.0, [found(f"{n:012x}") for n in range(number, number + 500)])
    held.append(psutil.Process().memory_info().rss / 2**20)
print(held[-1] - held[9])
"""
_HEAPS = """
import ctypes, tempfile, threading
from outvote.commands.serve.run import _share_heaps

_share_heaps()
all_there = threading.Barrier(8)

def work():
    held = [bytearray(5000) for _ in range(100)]
    all_there.wait()

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(file.read().count(b"<heap nr="))
"""
