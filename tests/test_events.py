"""The store: every command tells its events there, and reports are made of it alone."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from every_command import RESULTS
from outvote.cli import main
from outvote.commands.record import recording
from outvote.commands.report.job import ReportJob
from outvote.commands.report.run import run as run_report
from outvote.core import events
from outvote.core.errors import UsageError
from outvote.core.events import Broken, CaseRun, Finished, Started, TargetDown, TargetUp
from outvote.findings.gate import STRICT, Gate
from outvote.findings.known import Known, KnownFile, Until
from outvote.run.watch import silent
from outvote.store import facts
from outvote.store.store import FILE, Store
from test_bisect import RELEASES, Index
from test_result_schema import ALIKE, CHECK, FUZZ, TOML

SOME: list[events.Event] = [
    Started("check", {"fail_on": "any"}),
    TargetUp("a", {"keras": "3"}, 0.5),
    TargetDown("b", "no such library"),
    events.StageBegun("Running", ("a", "b")),
    events.StageEnded("Running", 1.5, True),
    CaseRun("a", "crash", 0.1, "died", "d2"),
    events.MutantsTested(8, 7, 1),
    events.FindingMet("0123456789ab", "crash", "bug", "a dies", "a"),
    Broken("a file is gone"),
    Finished("consistent", "All is well.", {"schema": 2}),
]


def test_every_kind_of_event_is_listed_and_kept_as_it_was(tmp_path: Path) -> None:
    assert set(events.KINDS.values()) == set(get_args(events.Event)) == set(map(type, SOME))
    with closing(Store(tmp_path, create=True)) as store:
        for event in SOME:
            store.tell(event)
    with closing(Store(tmp_path, create=False)) as store:
        kept = store.events()
    assert [told.event for told in kept] == SOME
    assert [told.at for told in kept] == sorted(told.at for told in kept)


def test_every_kind_of_event_and_its_data_are_documented() -> None:
    page = (Path(__file__).parents[1] / "docs" / "result-json.md").read_text()
    for name, kind in events.KINDS.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        assert all(f"`{field.name}`" in row for field in fields(kind)), row


def test_events_come_from_many_threads(tmp_path: Path) -> None:
    """Each target tells from a thread of its own that it has finished."""
    with closing(Store(tmp_path, create=True)) as store:
        store.begin(Started("check"))

        def tell() -> None:
            for _ in range(50):
                store.tell(CaseRun("a", "ok", 0.1))

        threads = [threading.Thread(target=tell) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store.events()) == 201


def test_only_the_last_result_is_kept(tmp_path: Path) -> None:
    """A folder that serves for a thousand checks stays small."""
    for name in ("first", "second"):
        with closing(Store(tmp_path, create=True)) as store:
            store.begin(Started("check"))
            store.tell(Finished("consistent", name, {"summary": name}))
    with closing(Store(tmp_path, create=False)) as store:
        done = [told.event for told in store.events() if isinstance(told.event, Finished)]
    assert [(event.summary, event.result) for event in done] == [
        ("first", None),
        ("second", {"summary": "second"}),
    ]


def test_every_fact_has_one_name_and_its_default(tmp_path: Path) -> None:
    listed = [value for value in vars(facts).values() if isinstance(value, facts.Fact)]
    assert len({fact.name for fact in listed}) == len(listed) == len(facts.ALL)
    with closing(Store(tmp_path, create=True)) as store:
        for fact in listed:
            if fact is not facts.SCHEMA:
                assert store.fact(fact) == fact.default
        store.fact(facts.KINDS)["Dense"] = 1
        assert store.fact(facts.KINDS) == {}, "a default is nobody's to change"


def test_a_gate_survives_the_store() -> None:
    entry = Known("aaaaaaaaaaaa", "why", "https://example.org", Until("keras", "3.16.0"))
    for gate in (STRICT, Gate(KnownFile(Path("known.toml"), (entry, Known("b" * 12, "r"))), "bug")):
        assert Gate.restored(json.loads(json.dumps(gate.stored()))) == gate


Run = Callable[..., dict[str, bytes]]


@pytest.fixture
def run(tmp_path: Path, fake_model: Path, fake_data: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on fake targets; all files that it left in its folder."""
    (tmp_path / "outvote.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)

    def outvote(*arguments: str, code: int = 1, out: str = "out") -> dict[str, bytes]:
        assert main([*arguments, "--out", out]) == code
        return written(Path(out))

    return outvote


REPORTS = ("result.json", "report.html", "report.md", "junit.xml", "results.sarif")


def written(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in REPORTS}


def require_rebuilt(out: Path, before: dict[str, bytes]) -> None:
    """Without its reports, `outvote report` makes the same of the store."""
    for name in REPORTS:
        (out / name).unlink()
    assert main(["report", str(out)]) == 0
    assert written(out) == before


def kinds(out: Path) -> list[str]:
    with closing(Store(out, create=False)) as store:
        return [events.kind_of(told.event) for told in store.events()]


@pytest.mark.slow
def test_a_check_tells_what_happens_and_is_rebuilt(run: Run, tmp_path: Path) -> None:
    before = run(*CHECK, "a,b,liar")
    told = kinds(Path("out"))
    assert told[0] == "started"
    assert told[-1] == "finished"
    assert told.count("target up") == told.count("case run") == 3
    assert told.count("stage begun") == told.count("stage ended") > 3
    assert told.count("finding") == 1
    assert told.index("target up") < told.index("case run") < told.index("finding")
    require_rebuilt(Path("out"), before)


@pytest.mark.slow
def test_a_campaign_tells_what_happens_and_is_rebuilt_with_its_rival(
    run: Run, tmp_path: Path
) -> None:
    before = run(*FUZZ, "a,b,odd", "--budget", "16", *ALIKE)
    told = kinds(Path("out"))
    assert told.count("target up") == 3
    assert told.count("mutants tested") > 1
    assert told.count("finding") >= 1
    assert told[-1] == "finished"
    require_rebuilt(Path("out"), before)
    both = run("report", "out", "out/random", code=0, out="both")
    require_rebuilt(Path("both"), both)


@pytest.mark.slow
def test_localize_nan_and_bisect_are_rebuilt_and_the_last_one_counts(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ("model.json", "--data", "data.npz", "--quiet")
    run(*CHECK, "a,b", code=0)
    require_rebuilt(Path("out"), run("localize", *model, "--targets", "a,liar"))
    require_rebuilt(Path("out"), run("nan", *model, "--target", "nan", "--budget", "2s"))
    index = Index(monkeypatch)
    index.misdeeds = dict.fromkeys(RELEASES[5:], "lie:d2")
    asked = ("--target", "a", "--against", "b", "--package", "made-up", "--from", "1.0")
    require_rebuilt(Path("out"), run("bisect", *model, *asked, "--to", "1.8"))
    with closing(Store(Path("out"), create=False)) as store:
        begun = [told.event for told in store.events() if isinstance(told.event, Started)]
    assert [event.command for event in begun] == ["check", "localize", "nan", "bisect"]


@pytest.mark.parametrize("name", [n for n in RESULTS if not n.startswith("fuzz")])
def test_what_a_command_publishes_is_rebuilt(name: str, tmp_path: Path) -> None:
    """Those that need gradients have no fake target: their results are given."""
    result = RESULTS[name]
    gate = STRICT if result["gate"] is not None else None
    with recording(result["command"], tmp_path, silent, gate) as record:
        record.publish({**result, "gate": None})
    require_rebuilt(tmp_path, written(tmp_path))


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with recording("nan", None, silent) as record:
        assert record.publish(RESULTS["nan"]) == RESULTS["nan"]
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_broke_says_so_and_the_one_before_it_is_reported(
    run: Run, tmp_path: Path
) -> None:
    assert main([*CHECK[:-1], "--targets", "a,b", "--weights", "none.h5", "--out", "new"]) == 2
    with pytest.raises(UsageError, match=r"in new has come to a result: UsageError: .*h5"):
        run_report(ReportJob(Path("new")))
    before = run(*CHECK, "a,b", code=0)
    run_again = [*CHECK, "a,b", "--out", "out", "--data", "none.npz"]
    assert main(run_again) == 2
    assert kinds(Path("out"))[-1] == "broken"
    require_rebuilt(Path("out"), before)


def test_a_stopped_run_without_a_result_is_told(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), recording("nan", tmp_path, silent):
        raise KeyboardInterrupt
    with pytest.raises(UsageError, match="has come to a result: it was stopped"):
        run_report(ReportJob(tmp_path))


def test_a_gate_is_only_for_findings(tmp_path: Path) -> None:
    with recording("nan", tmp_path, silent) as record:
        record.publish(RESULTS["nan"])
    with pytest.raises(UsageError, match=r"`outvote nan` in .* has none"):
        run_report(ReportJob(tmp_path, fail_on="bug"))


def test_a_folder_without_a_store_and_one_of_another_version_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{FILE} is missing"):
        run_report(ReportJob(tmp_path))
    with closing(Store(tmp_path, create=True)) as store:
        store.note(facts.SCHEMA, 99)
    with pytest.raises(UsageError, match="another version"):
        Store(tmp_path, create=True)


@pytest.mark.parametrize(
    ("kind", "data"),
    [("guess", "{}"), ("broken", "{}"), ("broken", "[1]"), ("broken", "{"), ("broken", '{"a": 1}')],
)
def test_an_event_that_nobody_wrote_is_one_sentence(kind: str, data: str, tmp_path: Path) -> None:
    with closing(Store(tmp_path, create=True)) as store:
        row = (1, 0.0, kind, data)
        store._db.execute("INSERT INTO events (run, at, kind, data) VALUES (?, ?, ?, ?)", row)
    with pytest.raises(UsageError, match=f"an event '{kind}' that cannot be read"):
        run_report(ReportJob(tmp_path))


@pytest.mark.slow
def test_a_campaign_and_other_commands_share_a_folder(run: Run, tmp_path: Path) -> None:
    run(*CHECK, "a,b", code=0)
    campaign = run(*FUZZ, "a,b", "--budget", "8", code=0)
    require_rebuilt(Path("out"), campaign)
    assert main([*FUZZ, "a,b", "--budget", "8", "--out", "out"]) == 2
    checked = run(*CHECK, "a,b", code=0)
    require_rebuilt(Path("out"), checked)
    resumed = ("fuzz", "--resume", "out", "--config", "outvote.toml", "--budget", "16", "--quiet")
    assert main(list(resumed)) == 0
    assert json.loads((Path("out") / "result.json").read_text())["tested"] == 16


def test_a_store_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with closing(Store(tmp_path, create=True)) as store:
        store._db.execute("PRAGMA query_only = ON")
        with pytest.raises(UsageError, match="cannot be written"):
            store.tell(Broken(""))
