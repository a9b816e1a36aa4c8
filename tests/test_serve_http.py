"""The workbench over HTTP: who is refused, what is written, campaigns paused and continued."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from conftest import write_fake_data, write_fake_model
from outvote.core.events import Broken, MutantsTested, Started
from outvote.store import facts
from outvote.store.owner import this_process
from outvote.store.queries import asked as questions_to
from outvote.store.store import FILE, Store
from served import Served, asked, checked, serving
from test_serve import data_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    model, data = write_fake_model(folder / "model.json"), write_fake_data(folder / "data.npz")
    checked(model, data, folder / "checked")
    (folder / "broken").mkdir()
    (folder / "broken" / FILE).write_bytes(b"nonsense" * 500)
    return folder


@pytest.fixture(scope="module")
def served(root: Path) -> Iterator[Served]:
    with serving(root, config=root / "outvote.toml") as found:
        yield found


def key_of(served: Served, name: str) -> str:
    before = served.get()[1].partition(f">{name}</a>")[0]
    return before.rpartition("/at/")[2][:12]


def fingerprint_in(root: Path) -> str:
    (folder,) = (root / "checked" / "findings").iterdir()
    return folder.name


def test_nobody_gets_in_without_the_token_or_from_elsewhere(served: Served) -> None:
    bare = served.address.rsplit("/", 2)[0] + "/"
    tried: list[tuple[str, dict[str, str]]] = [
        (bare, {}),
        (bare + "findings", {}),
        (served.address, {"host": "evil.example"}),
        (served.address, {"origin": "http://evil.example"}),
        (served.address, {"sec-fetch-site": "cross-site"}),
    ]
    for address, headers in tried:
        status, text = asked(address, headers)
        assert (status, text.startswith("outvote: ")) == (403, True), (address, headers)
        assert "checked" not in text


def test_it_listens_on_this_machine_alone(served: Served) -> None:
    found = psutil.Process(served.process.pid).net_connections()
    listening = {one.laddr.ip for one in found if one.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}


def test_every_answer_carries_the_policy(served: Served, root: Path) -> None:
    for path in ("", "findings", "assets/live.js", f"finding/{fingerprint_in(root)}", "live"):
        with urllib.request.urlopen(served.address + path) as answer:
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"


def test_addresses_that_lead_outside_are_refused(served: Served, root: Path) -> None:
    (root / "secret.txt").write_text("secret")
    finding = f"finding/{fingerprint_in(root)}"
    link = root / "checked" / "findings" / fingerprint_in(root) / "model.onnx"
    link.symlink_to(root / "model.json")
    outside = root.with_name("outside.txt")
    outside.write_text("secret")
    for path in (
        f"{finding}/file/..%2f..%2f..%2fsecret.txt",
        f"{finding}/file/result.json",
        "assets/..%2f__init__.py",
        "at/..%2f..",
        "finding/..%2f..",
        "at/000000000000",
        "nowhere",
    ):
        status, text = served.get(path)
        assert status == 404, path
        assert "secret" not in text
    link.unlink()
    link.symlink_to(outside)
    assert served.get(f"{finding}/file/model.onnx")[0] == 404
    link.unlink()
    assert served.get(f"{finding}/file/repro.py")[0] == 200


def test_the_page_of_a_campaign_on_a_cluster_tells_what_each_crew_does(
    served: Served, root: Path
) -> None:
    folder = root / "fleet"
    folder.mkdir()
    crew = {"node": "<b>n1</b>", "since": time.time() - 3, "tested": 1234}
    with closing(Store(folder, create=True)) as store:
        store.note(facts.JOB, {"strategy": "random", "targets": ["a", "b"]})
        store.note(facts.STATE, {"tallies": {}})
        store.note(facts.OWNER, this_process())
        store.begin(Started("fuzz"))
        told = [
            {"crew": 1, "doing": "attempt", "numbers": [48, 41, 45], **crew},
            {"crew": 2, "doing": "look", "numbers": [7], **crew},
            {"crew": 3, "doing": "starting", "numbers": [], **crew, "node": ""},
        ]
        store.note(facts.CREWS, told)
    until(lambda: ">fleet</a>" in served.get()[1], "it is not listed")
    at = f"at/{key_of(served, 'fleet')}"
    page = served.get(at)[1]
    assert "<td>runs 41 to 48</td>" in page
    assert "<td>looks into 7</td>" in page
    assert "<td>starts its targets </td>" in page
    assert "&lt;b&gt;n1&lt;/b&gt;" in page
    assert "1,234" in page
    with closing(Store(folder, create=False)) as store:
        store.tell(Broken(""))
    until(lambda: "<h2>Crews</h2>" not in served.get(at)[1], "crews stay when it has ended")


def test_a_folder_that_cannot_be_read_says_so(served: Served) -> None:
    assert "is not a readable store" in served.get()[1]
    assert served.get(f"at/{key_of(served, 'broken')}")[0] == 200


def test_a_report_is_made_anew_and_what_lies_there_is_not_shown(served: Served, root: Path) -> None:
    (root / "checked" / "report.html").write_text("<script>evil()</script>")
    status, page = served.get(f"at/{key_of(served, 'checked')}/report")
    assert status == 200
    assert "evil()" not in page
    assert "liar differs by" in page


def test_uploads_are_checked_and_stay_inside(served: Served, root: Path, tmp_path: Path) -> None:
    before = tree(root)
    objects = tmp_path / "objects.npz"
    np.savez(objects, x=np.array([{"a": 1}], dtype=object))
    for name, content, told in (
        ("model.exe", b"MZ", "is neither a model"),
        ("m.keras", b"no archive", "is not a whole"),
        ("m.keras", b"", "is empty"),
        ("..", b"x", "needs a name"),
        ("x.npz", objects.read_bytes(), "objects"),
    ):
        status, text = served.post(f"models/file?name={name}", content)
        assert status == 400, (name, text)
        assert told in json.loads(text)["error"]
    assert tree(root) == before
    model = (root / "model.json").read_bytes()
    status, text = served.post("models/file?name=..%2f..%2fm.json", model)
    assert status == 200
    run = json.loads(text)["run"]
    asked_for: list[tuple[Any, str]] = [
        ({"run": "../..", "targets": ["a", "b"]}, "needs a name"),
        ({"run": "../runs", "targets": ["a", "b"]}, "no run"),
        ({"run": run, "targets": ["a"]}, "needs two targets"),
        ({"run": run, "targets": ["a", "keras==3.8.0/torch"]}, "there is no target"),
        ({"run": run, "targets": ["a", "--out=/x"]}, "there is no target"),
        ({"run": run}, "choose the targets"),
        ([], "no fields"),
    ]
    for given, told in asked_for:
        status, text = served.post("models/check", json.dumps(given).encode())
        assert status == 400, given
        assert told in json.loads(text)["error"]
    new = tree(root) - before
    assert new
    assert all(path.startswith("outvote-serve/") for path in new)


def tree(root: Path) -> set[str]:
    """All files, but for those that SQLite keeps beside a store."""
    found = (path for path in root.rglob("*") if path.is_file())
    return {str(p.relative_to(root)) for p in found if not p.name.startswith(f"{FILE}-")}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"reason": ""}, "reason is empty"),
        ({"reason": "x", "link": "javascript:alert(1)"}, "a link begins with"),
        ({"reason": 5, "link": ["x"]}, "a link begins with"),
    ],
)
def test_a_known_entry_must_make_sense(
    served: Served, root: Path, given: dict[str, Any], told: str
) -> None:
    path = f"finding/{fingerprint_in(root)}/known"
    status, text = served.post(path, json.dumps(given).encode())
    assert (status, told in text) == (400, True), text
    assert not (root / "known.toml").exists()


def test_letters_that_no_file_can_hold_are_spelt_out(served: Served, root: Path) -> None:
    path = f"finding/{fingerprint_in(root)}"
    given = b'{"reason": "half \\ud800, bell \\u0007"}'
    assert served.post(f"{path}/known", given)[0] == 200
    assert "half \\ud800" in served.get(path)[1]
    assert served.post(f"{path}/known", b'{"forget": true}')[0] == 200
    (root / "known.toml").unlink()


def until(true: Callable[[], bool], what: str) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.05)
    pytest.fail(what)


def cases_in(folder: Path) -> int:
    events = [told.event for told in told_in(folder, "mutants tested")]
    return events[-1].tested if events and isinstance(events[-1], MutantsTested) else 0


def stands_still(folder: Path) -> bool:
    before = cases_in(folder)
    time.sleep(0.5)
    return cases_in(folder) == before


def test_a_campaign_pauses_goes_on_stops_and_continues(served: Served, root: Path) -> None:
    """Begun in a terminal, led from the page; its numbers go on where they stood."""
    folder = root / "led"
    command = [sys.executable, "-m", "outvote", "fuzz", str(root / "model.json"), "--data"]
    command += [str(root / "data.npz"), "--targets", "a,b", "--config", str(root / "outvote.toml")]
    command += ["--budget", "10m", "--strategy", "random", "--out", str(folder), "--quiet"]
    begun = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def at(state: str) -> None:
        until(lambda: f">{state}<" in served.get(page)[1], f"it is not seen as {state}")

    until(lambda: cases_in(folder) > 10, "it does not begin")
    until(lambda: ">led</a>" in served.get()[1], "it is not listed")
    page = f"at/{key_of(served, 'led')}"
    at("running")
    assert served.post(f"{page}/pause")[0] == 200
    at("paused")
    until(lambda: stands_still(folder), "it does not wait after the generation that it was in")
    before = cases_in(folder)
    assert served.post(f"{page}/pause")[0] == 200
    until(lambda: cases_in(folder) > before, "it does not go on")
    assert served.post(f"{page}/stop")[0] == 200
    assert begun.wait(60) == 130
    at("stopped")
    before = cases_in(folder)
    assert served.post(f"{page}/stop")[0] == 400
    assert served.post(f"{page}/continue")[0] == 200
    until(lambda: cases_in(folder) > before, "it does not continue")
    at("running")
    assert "outvote fuzz --resume" in served.get(page)[1]
    assert served.post(f"{page}/stop")[0] == 200
    at("stopped")
    with closing(Store(folder, create=False)) as store:
        numbers = [row.number for row in store.rows()]
    assert numbers == list(range(1, len(numbers) + 1)), "every number once"


def test_what_was_started_from_a_page_ends_with_the_workbench(root: Path, tmp_path: Path) -> None:
    config = tmp_path / "outvote.toml"
    slow = '\nenv = { OUTVOTE_FAKE = "hang:d2" }'
    config.write_text(
        '[targets.a]\nextends = "fake"\nlibrary = "a"\n'
        f'[targets.slow]\nextends = "fake"\nlibrary = "slow"{slow}\n'
    )
    with serving(tmp_path, config=config) as served:
        status, text = served.post("models/file?name=m.json", (root / "model.json").read_bytes())
        assert status == 200, text
        given = {"run": json.loads(text)["run"], "targets": ["a", "slow"]}
        status, text = served.post("models/check", json.dumps(given).encode())
        assert status == 200, text
        (folder,) = (tmp_path / "outvote-serve" / "runs").iterdir()
        until(lambda: bool(told_in(folder, "stage begun")), "it does not begin")
        with questions_to(folder) as store:
            owner = store.fact(facts.OWNER)["pid"]
        assert psutil.pid_exists(owner)
    assert not psutil.pid_exists(owner)
    assert told_in(folder, "broken"), "as by Ctrl-C"


def told_in(folder: Path, kind: str) -> list[Any]:
    if not (folder / FILE).exists():
        return []
    with questions_to(folder) as store:
        return list(store.events(0, kind))


def test_many_look_while_a_campaign_grows_and_memory_stays(served: Served, root: Path) -> None:
    """Ten at once, over thousands of events: what is kept of each folder is bounded."""
    folder = root / "growing"
    folder.mkdir()
    with closing(Store(folder, create=True)) as store:
        store.note(facts.JOB, {"strategy": "random", "targets": ["a", "b"]})
        store.note(facts.CREATED, "2026-03-14T09:26:53+00:00")
        store.begin(Started("fuzz"))
        store.found("0123456789ab", 1, 1.0, data_of("a dies"))
        until(lambda: ">growing</a>" in served.get()[1], "it is not listed")
        page = f"at/{key_of(served, 'growing')}/live"
        process = psutil.Process(served.process.pid)
        memory = []
        with ThreadPoolExecutor(10) as ten:
            for turn in range(12):
                with store.transaction():
                    for n in range(400):
                        store.tell(MutantsTested(turn * 400 + n, 0, 1, seconds=float(n + turn)))
                        store.again("0123456789ab", 1, float(turn))
                answers = list(ten.map(lambda _: served.get(page), range(40)))
                assert {status for status, _ in answers} == {200}
                memory.append(process.memory_info().rss)
    assert memory[-1] < memory[2] * 1.1, [size >> 20 for size in memory]
