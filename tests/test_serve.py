"""What the workbench is made of: questions to stores, the table of causes, the guard, its files."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.cli import main
from outvote.core.errors import UsageError
from outvote.core.events import Broken, Finished, MutantsTested, Started
from outvote.core.harm import harm
from outvote.core.outputs import Outputs
from outvote.findings.answers import KeptAnswers, load_answers, save_answers
from outvote.findings.known import Known, Until, load_known
from outvote.findings.known_entries import with_entry, without_entry
from outvote.serve import lines
from outvote.serve.causes import PAGE, Causes, Filter
from outvote.serve.guard import refusal
from outvote.serve.numbers import side_by_side
from outvote.serve.own_folder import OwnFolder
from outvote.serve.places import places_below
from outvote.serve.shelf import Shelf
from outvote.serve.track import Track
from outvote.serve.uploads import looked_at, plain_name, role_of
from outvote.store import facts
from outvote.store.owner import process_of, this_process
from outvote.store.queries import ShortFinding, asked
from outvote.store.store import FILE, Store
from test_store import row_of

TOKEN = "a-token"


def found(fingerprint: str, **more: Any) -> ShortFinding:
    values: dict[str, Any] = {
        "row": 1, "count": 1, "first_at": 1.0, "last_at": 1.0, "rule": "LA", "kind": "nan",
        "triage": "bug", "title": f"title of {fingerprint}", "accused": "torch", "layer": "d1",
        "layer_kind": "Dense", "distance": 0.5, "targets": ("torch", "jax"), **more,
    }  # fmt: skip
    return ShortFinding(fingerprint=fingerprint, **values)


def data_of(title: str, **more: Any) -> dict[str, Any]:
    told = {"title": title, "kind": "crash", "triage": "bug", "accused": "a", "layer": None}
    return {**told, "layer_kind": "Dense", "distance": 1.0, "targets": ["a", "b"], **more}


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A stored campaign with a seed, two mutants and a finding; nobody is at work."""
    folder = tmp_path / "campaign"
    folder.mkdir()
    with closing(Store(folder, create=True)) as store:
        store.note(facts.JOB, {"strategy": "random", "targets": ["a", "b"]})
        store.note(facts.CREATED, "2026-03-14T09:26:53+00:00")
        store.begin(Started("fuzz"))
        store.add(row_of(1, new="seed"))
        store.add(row_of(2, 1, "LA", new="Dense"))
        store.add(row_of(3, 2, "LC", new="ReLU"))
        store.found("0123456789ab", 3, 7.5, data_of("a dies"))
        store.tell(MutantsTested(2, 2, 1, seconds=10.0, share=0.25, kinds=2, values=3))
    return folder


# Questions to a store


def test_a_finding_comes_with_its_lineage_and_the_rule_that_found_it(campaign: Path) -> None:
    with asked(campaign) as store:
        (short,) = store.findings()
        whole = store.finding("0123456789ab")
        assert store.finding("ffffffffffff") is None
    assert (short.rule, short.title, short.targets) == ("LC", "a dies", ("a", "b"))
    assert whole is not None
    assert [step["rule"] for step in whole["lineage"]] == [None, "LA", "LC"]
    assert whole["lineage"][0]["new"] == "seed"


def test_only_what_is_new_is_asked_for(campaign: Path) -> None:
    with closing(Store(campaign, create=False)) as store, asked(campaign) as questions:
        (first,) = questions.findings()
        assert list(questions.findings(first.row, first.last_at)) == []
        store.again("0123456789ab", 3, 9.0)
        (met,) = questions.findings(first.row, first.last_at)
        assert (met.count, met.last_at) == (2, 9.0)
        (event,) = questions.events(0, "mutants tested")
        assert list(questions.events(event.number, "mutants tested")) == []


def test_a_store_is_not_written_by_questions(campaign: Path) -> None:
    with asked(campaign) as store, pytest.raises(sqlite3.OperationalError, match="readonly"):
        store._db.execute("DELETE FROM facts")


def test_what_is_no_store_is_said(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"nonsense" * 1000)
    with pytest.raises(UsageError, match="not a readable store"), asked(tmp_path):
        pass


def test_the_result_of_a_command_is_kept_apart_from_its_events(tmp_path: Path) -> None:
    with closing(Store(tmp_path, create=True)) as store:
        store.begin(Started("check"))
        store.tell(Finished("consistent", "well", {"findings": []}))
    with asked(tmp_path) as questions:
        (ended,) = questions.events(0, "finished")
        assert ended.event == Finished("consistent", "well")
        assert questions.result() == {"findings": []}


# What is known of a folder


def test_a_folder_is_followed_until_its_end(campaign: Path) -> None:
    (place,) = places_below([campaign.parent])
    track = Track(place)
    assert [one.fingerprint for one in track.refresh()] == ["0123456789ab"]
    assert (track.state, track.command, track.strategy) == ("gone", "fuzz", "random")
    assert track.left() == 30.0
    assert list(track.refresh()) == []
    with closing(Store(campaign, create=False)) as store:
        store.note(facts.OWNER, this_process())
        store.note(facts.PAUSED, True)
        store.tell(MutantsTested(8, 8, 1, seconds=20.0, share=0.5))
    list(track.refresh())
    assert (track.state, track.rate()) == ("paused", 36.0)
    with closing(Store(campaign, create=False)) as store:
        store.note(facts.INTERRUPTED, False)
        store.tell(Finished("inconsistent", "1 finding."))
    assert [one.fingerprint for one in track.refresh()] == ["0123456789ab"], "told anew at the end"
    assert (track.state, track.summary) == ("done", "1 finding.")


@pytest.mark.parametrize(("reason", "state"), [("", "stopped"), ("no such file", "failed")])
def test_a_command_without_a_result_says_why(tmp_path: Path, reason: str, state: str) -> None:
    with closing(Store(tmp_path, create=True)) as store:
        store.begin(Started("check"))
        store.tell(Broken(reason))
    track = Track(places_below([tmp_path])[0])
    assert list(track.refresh()) == []
    assert (track.state, track.summary) == (state, reason)


def test_a_check_that_was_stopped_says_so_and_has_a_report(tmp_path: Path) -> None:
    with closing(Store(tmp_path, create=True)) as store:
        store.begin(Started("check"))
        store.tell(Finished("interrupted", "Stopped early: a had finished."))
    track = Track(places_below([tmp_path])[0])
    assert not track.has_report
    assert list(track.refresh()) == []
    assert (track.state, track.has_report) == ("stopped", True)


def test_a_line_over_time_stays_short(tmp_path: Path) -> None:
    with closing(Store(tmp_path, create=True)) as store:
        store.begin(Started("fuzz"))
        with store.transaction():
            for n in range(2000):
                store.tell(MutantsTested(n, n, 0, seconds=float(n)))
    track = Track(places_below([tmp_path])[0])
    list(track.refresh())
    assert 100 < len(track.points) <= 240
    assert track.latest is not None
    assert track.latest.tested == 1999
    assert track.points == sorted(track.points, key=lambda point: point.tested)


def test_a_process_of_the_same_number_is_not_the_owner() -> None:
    own = this_process()
    assert process_of(own) is not None
    assert process_of({**own, "born": own["born"] - 100}) is None
    assert process_of({**own, "host": "elsewhere"}) is None
    assert process_of({}) is None


def test_places_are_found_and_links_are_not_followed(tmp_path: Path) -> None:
    for inner in ("a", "b/c", "b/findings/x", ".hidden"):
        (tmp_path / inner).mkdir(parents=True)
        (tmp_path / inner / "result.json").write_text("{}")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert [place.name for place in places_below([tmp_path])] == ["a", "b/c"]


def test_a_bad_result_is_listed_with_its_trouble_and_the_rest_is_shown(tmp_path: Path) -> None:
    texts = {"cut": "{", "deep": "[" * 100_000, "other": "[1]", "short": '{"command": "check"}'}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(text)
    good = {"command": "check", "verdict": "consistent", "summary": "All agree.", "findings": [],
            "created": "2026-03-14T09:26:53+00:00", "targets": [{"name": "jax"}]}  # fmt: skip
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "result.json").write_text(json.dumps(good))
    shelf = Shelf([tmp_path], dict)
    shelf.refresh()
    states = {track.place.name: track.state for track in shelf.tracks()}
    assert states == {**dict.fromkeys(texts, "unreadable"), "good": "done"}
    assert all(track.trouble for track in shelf.tracks() if track.place.name in texts)


def test_a_folder_that_has_gone_takes_its_findings_along(campaign: Path) -> None:
    shelf = Shelf([campaign.parent], dict)
    shelf.refresh()
    assert shelf.causes.find(Filter()).total == 1
    (campaign / FILE).unlink()
    shelf.refresh(walk=True)
    assert shelf.tracks() == []
    assert shelf.causes.find(Filter()).total == 0


def test_findings_that_a_later_run_no_longer_has_are_gone(tmp_path: Path) -> None:
    shelf = Shelf([tmp_path], dict)
    head = {"created": "2026-03-14T09:26:53+00:00", "targets": []}
    for findings in ([data_of("x", fingerprint="0" * 12)], [data_of("y", fingerprint="1" * 12)]):
        with closing(Store(tmp_path, create=True)) as store:
            store.begin(Started("check"))
            store.tell(Finished("inconsistent", "", {**head, "findings": findings}))
        shelf.refresh()
    assert [row["title"] for row in shelf.causes.find(Filter()).rows] == ["y"]


# The table of causes


@pytest.fixture
def causes() -> Causes:
    table = Causes()
    rows = [
        found("000000000001", triage="precision"),
        found("000000000002", kind="crash", count=3),
        found("000000000003", kind="crash", count=7, accused=None, layer_kind="LSTM"),
        found("000000000004", triage="unknown", first_at=500.0, title="ÄRGER with 100% _ text"),
    ]
    table.put("one", 1000.0, rows)
    table.put("two", 2000.0, [found("000000000002", kind="crash", count=10)])
    return table


def fingerprints(table: Causes, **asked_for: Any) -> list[str]:
    return [row["fingerprint"][-1] for row in table.find(Filter(**asked_for)).rows]


def test_the_most_harmful_come_first_and_a_cause_is_one_row(causes: Causes) -> None:
    assert fingerprints(causes) == ["2", "3", "4", "1"]
    (row, *_) = causes.find(Filter()).rows
    assert (row["count"], row["places"], row["first"]) == (13, 2, 1001.0)
    assert causes.places_of("000000000002") == ["two", "one"]


@pytest.mark.parametrize(
    ("asked_for", "kept"),
    [
        ({"text": "ärger"}, "4"),
        ({"text": "100% _"}, "4"),
        ({"text": "lstm crash"}, "3"),
        ({"text": "no such"}, ""),
        ({"text": "' OR 1=1 --"}, ""),
        ({"triage": "bug"}, "23"),
        ({"kind": "nan", "triage": "precision"}, "1"),
        ({"accused": "torch", "kind": "crash"}, "2"),
        ({"place": "two"}, "2"),
        ({"since": 1400.0}, "4"),
        ({"status": "known"}, "3"),
        ({"status": "new", "triage": "bug"}, "2"),
        ({"sort": "newest"}, "4123"),
        ({"sort": "times", "place": "one"}, "3214"),
    ],
)
def test_a_filter_keeps(causes: Causes, asked_for: dict[str, Any], kept: str) -> None:
    causes.know({"000000000003": "reported"})
    assert "".join(fingerprints(causes, **asked_for)) == kept


def test_an_address_cannot_ask_for_nonsense() -> None:
    given = {"sort": "1; DROP TABLE causes", "page": "-1", "since": "yesterday", "evil": "x"}
    assert Filter.of(given) == Filter()
    assert Filter.of({"page": "3", "sort": "newest", "since": "5"}) == Filter(
        page=3, sort="newest", since=5.0
    )


def test_pages_do_not_overlap() -> None:
    table = Causes()
    table.put("one", 0.0, [found(f"{n:012d}") for n in range(250)])
    pages = [table.find(Filter(page=n)) for n in range(3)]
    assert [page.total for page in pages] == [250] * 3
    seen = [row["fingerprint"] for page in pages for row in page.rows]
    assert len(seen) == len(set(seen)) == 250
    assert len(pages[0].rows) == PAGE


@pytest.mark.slow
def test_the_table_does_not_grow_with_what_is_met_again() -> None:
    table = Causes()

    def met(place: int, count: int) -> ShortFinding:
        return found(f"{place * 2654435761 % (1 << 48):012x}", count=count, last_at=float(count))

    def pages() -> int:
        (count,) = table._db.execute("PRAGMA page_count").fetchone()
        return int(count)

    table.put("here", 0.0, [met(n, 1) for n in range(1500)])
    before = pages()
    for count in range(2, 4):
        for place in range(0, 1500, 60):
            table.put("here", 0.0, [met(n, count) for n in range(place, place + 60, 2)])
    assert pages() < 1.2 * before
    (first, *_) = table.find(Filter(sort="times")).rows
    assert first["count"] == 3


def test_a_full_disk_is_said_and_the_table_stays_as_it_was(causes: Causes) -> None:
    before = causes.find(Filter()).total
    causes._db.execute("PRAGMA max_page_count = 1")  # as many as there are
    many = [found(f"{n:012x}") for n in range(1000)]
    with pytest.raises(UsageError, match=r"cannot be kept \(database or disk is full\); free some"):
        causes.put("three", 0.0, many)
    assert causes.find(Filter()).total == before
    causes._db.execute("PRAGMA max_page_count = 100000")
    causes.put("three", 0.0, many)
    assert causes.find(Filter()).total == before + 1000 - 4


def test_harm_has_an_order_and_takes_new_words() -> None:
    order = [("bug", "inconsistency"), ("bug", "crash"), ("bug", "a new kind"), ("unknown", "hang"),
             ("difference", "crash"), ("precision", "nan"), ("a new triage", "crash")]  # fmt: skip
    places = [harm(*words) for words in order]
    assert places == sorted(places)
    assert len(set(places)) == len(places)


# Who gets in


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", f"/{TOKEN}/", {}),
        ("GET", f"/{TOKEN}/findings", {"sec-fetch-site": "same-origin"}),
        ("GET", f"/{TOKEN}/", {"sec-fetch-site": "none", "host": "localhost:8642"}),
        ("POST", f"/{TOKEN}/x", {"x-outvote": "1", "origin": "http://127.0.0.1:8642"}),
    ],
)
def test_our_own_pages_get_in(method: str, path: str, headers: dict[str, str]) -> None:
    assert refusal(method, path, {"host": "127.0.0.1:8642", **headers}, TOKEN) == ""


@pytest.mark.parametrize(
    ("method", "path", "headers", "told"),
    [
        ("GET", "/", {}, "lacks the token"),
        ("GET", f"/{TOKEN[:-1]}/", {}, "lacks the token"),
        ("GET", f"/x/{TOKEN}/", {}, "lacks the token"),
        ("GET", f"/{TOKEN}ä/", {}, "lacks the token"),
        ("GET", f"/{TOKEN}/", {"host": "evil.example:8642"}, "only to be had from 127.0.0.1"),
        ("GET", f"/{TOKEN}/", {"host": ""}, "only to be had from 127.0.0.1"),
        ("GET", f"/{TOKEN}/", {"origin": "http://evil.example"}, "another origin"),
        ("GET", f"/{TOKEN}/", {"origin": "http://127.0.0.1:9999"}, "another origin"),
        ("GET", f"/{TOKEN}/", {"origin": "null"}, "another origin"),
        ("GET", f"/{TOKEN}/", {"sec-fetch-site": "cross-site"}, "another origin"),
        ("GET", f"/{TOKEN}/", {"sec-fetch-site": "same-site"}, "another origin"),
        ("POST", f"/{TOKEN}/x", {}, "only our own pages"),
        ("DELETE", f"/{TOKEN}/x", {"x-outvote": "0"}, "only our own pages"),
    ],
)
def test_nobody_else_gets_in(method: str, path: str, headers: dict[str, str], told: str) -> None:
    assert told in refusal(method, path, {"host": "127.0.0.1:8642", **headers}, TOKEN)


# What it writes


COMMENTED = """\
# the team's file
[[known]]  # first
fingerprint = "0123456789ab"
reason = "meant"

# before the second
[[ known ]]
fingerprint = "ba9876543210"
reason = '''
several lines
'''
until = "keras 3.16.0"
"""


def test_an_entry_is_added_and_the_rest_stays_as_it_was(tmp_path: Path) -> None:
    entry = Known("aaaaaaaaaaaa", 'quoted "x" \\ and\nlines\x7f ü', "https://example.org/?a=b#c")
    made = with_entry(COMMENTED, entry)
    assert made.startswith(COMMENTED)
    (tmp_path / "known.toml").write_text(made)
    *before, last = load_known(None, tmp_path).entries
    assert last == entry
    assert [known.fingerprint for known in before] == ["0123456789ab", "ba9876543210"]


def test_an_entry_is_changed_in_one_place(tmp_path: Path) -> None:
    made = with_entry(COMMENTED, Known("0123456789ab", "new", None, Until("keras", "4.0")))
    (tmp_path / "known.toml").write_text(made)
    entries = {known.fingerprint: known for known in load_known(None, tmp_path).entries}
    assert entries["0123456789ab"] == Known("0123456789ab", "new", None, Until("keras", "4.0"))
    assert entries["ba9876543210"].reason == "several lines\n"
    assert len(entries) == 2


def test_an_entry_is_taken_out() -> None:
    left = without_entry(COMMENTED, "ba9876543210")
    assert "0123456789ab" in left
    assert "several lines" not in left
    assert without_entry(left, "0123456789ab").startswith("# the team's file")


def test_what_only_looks_like_an_entry_is_not_cut() -> None:
    text = '[[known]]\nfingerprint = "0123456789ab"\nreason = """\n[[known]]\n"""\n'
    with pytest.raises(UsageError, match="edit known"):
        without_entry(text, "0123456789ab")


def test_a_file_that_cannot_be_read_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "known.toml").write_text("[[known]\n")
    with pytest.raises(UsageError, match="could not be read"):
        OwnFolder(tmp_path).know(Known("0123456789ab", "x"))
    assert (tmp_path / "known.toml").read_text() == "[[known]\n"


def test_notes_stay_and_go(tmp_path: Path) -> None:
    own = OwnFolder(tmp_path)
    own.write_note("0123456789ab", "look <here>")
    assert OwnFolder(tmp_path).note("0123456789ab") == "look <here>"
    assert own.noted() == {"0123456789ab"}
    own.write_note("0123456789ab", " ")
    assert own.noted() == set()
    for name in ("../x", "0123456789a", "0123456789AB", "0123456789ab/.."):
        with pytest.raises(UsageError, match="12 digits"):
            own.write_note(name, "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outvote-serve"]


def test_runs_get_folders_of_their_own(tmp_path: Path) -> None:
    own = OwnFolder(tmp_path)
    made = [own.new_run("../../evil name.keras") for _ in range(3)]
    assert len(set(made)) == 3
    assert all(path.parent == tmp_path / "outvote-serve" / "runs" for path in made)
    assert all("evil-name" in path.name for path in made)


# What is dropped on a page


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("model.keras", "model.keras"),
        ("../../etc/passwd", "passwd"),
        ("C:\\x\\a b.onnx", "a-b.onnx"),
        ("--out=x.keras", "out-x.keras"),
        (".hidden.npz", "hidden.npz"),
        ("<img src=x>.json", "img-src-x-.json"),
    ],
)
def test_names_are_made_plain(given: str, name: str) -> None:
    assert plain_name(given) == name


@pytest.mark.parametrize("given", ["", "..", "/", "---"])
def test_a_file_needs_a_name(given: str) -> None:
    with pytest.raises(UsageError, match="needs a name"):
        plain_name(given)


def test_the_ending_says_what_a_file_is_for() -> None:
    names = ("m.keras", "m.onnx", "m.json", "v.npz", "m.weights.h5")
    assert [role_of(name) for name in names] == ["model"] * 3 + ["data", "weights"]
    with pytest.raises(UsageError):
        role_of("evil.exe")


def test_data_with_objects_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(UsageError, match="objects"):
        looked_at(tmp_path / "x.npz", "data", None)


# Numbers


def answers(**arrays: Any) -> KeptAnswers:
    return KeptAnswers({name: (np.asarray(array),) for name, array in arrays.items()})


def test_answers_are_kept_and_read_again(tmp_path: Path) -> None:
    def outputs(*arrays: Any) -> Outputs:
        made = tuple(np.asarray(array, "float32") for array in arrays)
        return Outputs(made, ("float32",) * len(made))

    given = {"keras==3.8.0/torch": outputs([1, 2], [3]), "jax:jit": outputs([1, 5], [3])}
    save_answers(tmp_path, given, outputs([1, 2], [3]))
    kept = load_answers(tmp_path)
    assert kept is not None
    assert list(kept.outputs) == list(given)
    assert [array.tolist() for array in kept.outputs["jax:jit"]] == [[1, 5], [3]]
    assert [array.tolist() for array in kept.expected] == [[1, 2], [3]]
    assert load_answers(tmp_path / "none") is None
    np.savez(tmp_path / "outputs.npz", x=np.ones(3))
    with pytest.raises(UsageError, match="names no targets"):
        load_answers(tmp_path)


def test_numbers_that_differ_most_come_first() -> None:
    (shown,) = side_by_side(answers(torch=[1.0, 2.0, 9.0], jax=[1.0, 2.5, 3.0]), "torch")
    assert shown.reference == "jax"
    assert [row["index"] for row in shown.rows] == ["2", "1", "0"]
    heats = [[cell["heat"] for cell in row["cells"]] for row in shown.rows]
    assert heats == [[4, 0], [1, 0], [0, 0]]
    assert [heat.largest for heat in shown.heats] == [6.0]


def test_rounding_has_no_colour_beside_a_real_difference() -> None:
    (shown,) = side_by_side(answers(a=[1.0, 2.0], b=[1.0, 2.0000002], bad=[1.0, 900.0]), "bad")
    assert [cell["heat"] for cell in shown.rows[0]["cells"]] == [0, 0, 4]
    assert shown.heats[0].picture != shown.heats[1].picture, "one scale for all"


def test_of_one_number_there_is_no_map() -> None:
    (shown,) = side_by_side(answers(a=[[1.0]], b=[[2.0]]), "b")
    assert shown.heats == []
    assert [cell["heat"] for cell in shown.rows[0]["cells"]] == [0, 4]


def test_a_number_on_one_side_only_is_hottest_and_equal_nans_are_equal() -> None:
    (shown,) = side_by_side(answers(a=[np.nan, np.nan, 1.0], b=[np.nan, 2.0, 1.0]), None)
    assert shown.rows[0]["index"] == "1"
    assert shown.rows[0]["cells"][1]["heat"] == 4
    assert [row["cells"][1]["heat"] for row in shown.rows[1:]] == [0, 0]


def test_other_shapes_and_large_outputs_are_told(tmp_path: Path) -> None:
    big = np.zeros((300, 500), "float32")
    away = big.copy()
    away[299, 499] = 1.0
    (shown,) = side_by_side(answers(a=big, b=away, c=big[:5]), "b")
    assert shown.others == ["c (5, 500)"]
    assert shown.more == 300 * 500 - len(shown.rows)
    assert shown.rows[0]["index"] == "299, 499"
    (heat,) = shown.heats
    assert (heat.size, heat.largest) == ((300, 500), 1.0)


def test_what_a_type_cannot_hold_is_no_difference() -> None:
    (shown,) = side_by_side(
        answers(a=np.array([0.01, 0.2]), b=np.array([0.01, 0.2], "float32")), "b"
    )
    assert shown.agree
    (shown,) = side_by_side(
        answers(a=np.array([0.01, 0.2]), b=np.array([0.01, 0.3], "float32")), "b"
    )
    assert [row["index"] for row in shown.rows if row["cells"][1]["heat"]] == ["1"]


def test_outputs_on_which_all_agree_come_last_and_without_a_map() -> None:
    same, ours, theirs = np.ones(4), np.zeros((2, 2)), np.ones((2, 2))
    kept = KeptAnswers({"a": (same, ours), "b": (same, theirs)})
    apart, alike = side_by_side(kept, None)
    assert (apart.output, apart.agree, len(apart.heats)) == (1, False, 1)
    assert (alike.output, alike.agree, alike.heats) == (0, True, [])


@pytest.mark.parametrize("array", [np.zeros((0, 3)), np.float32(2.0), np.array([1, 2]), [True]])
def test_unusual_outputs_are_shown(array: Any) -> None:
    (shown,) = side_by_side(answers(a=array, b=array), None)
    assert shown.names == ["a", "b"]


# Lines


def test_rates_are_those_between_points() -> None:
    points = [MutantsTested(n * n, 0, 0, seconds=60.0 * n) for n in range(4)]
    assert lines.rates(points) == [(60.0, 1.0), (120.0, 3.0), (180.0, 5.0)]


def test_a_staircase_ends_at_the_number_of_findings() -> None:
    steps = lines.steps([float(n) for n in range(5000)], 6000.0)
    assert steps[-1] == (6000.0, 5000.0)
    assert len(steps) < 500
    assert lines.steps([], 5.0) == []
    assert lines.chart("empty", {"x": []}) is None


def test_what_grows_is_drawn_from_nothing_to_the_end_in_few_points() -> None:
    assert lines.totals([[2.0, 7.0], [3.0, 9.0]], 5.0) == [
        *((0.0, 0.0), (2.0, 7.0), (3.0, 9.0), (3.0, 9.0), (5.0, 9.0))
    ]
    many = lines.totals([[float(n), float(n)] for n in range(5000)], 4000.0)
    assert many[-1] == (4999.0, 4999.0)
    assert len(many) < 300
    assert lines.totals([], 5.0) == []


# The command


def test_a_folder_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(tmp_path / "none")]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_what_is_missing_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["serve", str(tmp_path)]) == 2
    assert "pip install 'outvote[serve]'" in capsys.readouterr().err


def test_a_workbench_that_can_look_no_more_ends_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def look(shelf: Shelf) -> None:
        looks.append(1)
        if len(looks) == 3:
            raise UsageError("the disk is full")

    monkeypatch.setattr(Shelf, "refresh", look)
    monkeypatch.setattr("outvote.commands.serve.run._EVERY", 0.05)
    assert main(["serve", str(tmp_path)]) == 2
    assert "the disk is full" in capsys.readouterr().err
