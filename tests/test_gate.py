"""The gate: what is known passes, what is new fails, what has run out or is stale is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outvote.cli import main
from outvote.commands.explore.job import BetweenTargets
from outvote.core.errors import UsageError
from outvote.findings.gate import STRICT, Gate
from outvote.findings.known import Known, KnownFile, Until, load_known

A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
FILE = Path("known.toml")


def finding(fingerprint: str = A, triage: str = "bug", *targets: str) -> dict[str, Any]:
    return {"fingerprint": fingerprint, "triage": triage, "targets": list(targets or ("jax",))}


def result(*findings: dict[str, Any], interrupted: bool = False) -> dict[str, Any]:
    targets = [
        {"name": "jax", "versions": {"keras": "3.15.1", "jax": "0.8.0"}},
        {"name": "torch", "versions": {"keras": "3.15.1", "torch": "2.9.0+cpu"}},
        {"name": "new", "versions": {"keras": "3.16.0"}},
    ]
    found = {"targets": targets, "findings": list(findings), "warnings": []}
    return {**found, "interrupted": interrupted}


def gate(*entries: Known, fail_on: str = "any") -> Gate:
    return Gate(KnownFile(FILE, entries), fail_on)


def until(package: str, version: str) -> Known:
    return Known(A, "slow upstream", None, Until(package, version))


@pytest.mark.parametrize(
    ("fail_on", "failing"),
    [
        ("bug", {"bug"}),
        ("difference", {"bug", "difference"}),
        ("any", {"bug", "difference", "unknown"}),
        ("new", {"bug", "difference", "unknown"}),
        ("never", set()),
    ],
)
def test_what_fails_a_run(fail_on: str, failing: set[str]) -> None:
    triages = ("bug", "difference", "unknown", "precision", "unsupported")
    given = {f"{i:012x}": triage for i, triage in enumerate(triages)}
    judged = gate(fail_on=fail_on).judged(result(*(finding(f, t) for f, t in given.items())))
    assert {given[name] for name in judged["gate"]["failing"]} == failing


def test_what_is_known_is_marked_and_passes_and_what_is_new_fails() -> None:
    given = result(finding(A), finding(B))
    judged = gate(Known(A, "by design", "https://example.org/1")).judged(given)
    known, new = judged["findings"]
    assert known["known"] == {"reason": "by design", "link": "https://example.org/1"}
    assert new["known"] is None
    assert judged["gate"]["failing"] == [B]
    assert judged["gate"]["notes"] == ["1 finding is known (known.toml) and does not fail the run"]
    assert "known" not in given["findings"][0], "the result that was given stays as it was"


@pytest.mark.parametrize(
    ("entry", "silences"),
    [
        (until("keras", "3.16.0"), True),
        (until("keras", "3.15.2"), True),
        (until("keras", "3.15.1"), False),
        (until("Keras", "3.9"), False),
        (until("keras", "3.15.1rc1"), False),
        (until("torch", "2.9.0"), False),  # no target that shows it has torch: all are asked
        (until("torch", "2.9.1"), True),
    ],
)
def test_an_entry_silences_until_its_release_is_reached_where_the_finding_shows(
    entry: Known, silences: bool
) -> None:
    judged = gate(entry).judged(result(finding(A)))
    assert judged["gate"]["failing"] == ([] if silences else [A])
    assert bool(judged["findings"][0]["known"]) is silences
    assert [e["fingerprint"] for e in judged["gate"]["expired"]] == ([] if silences else [A])
    assert judged["gate"]["stale"] == []


def test_a_candidate_comes_before_its_release_and_a_local_build_does_not() -> None:
    given = result(finding(A))
    given["targets"][0]["versions"]["keras"] = "3.16.0rc1"
    assert gate(until("keras", "3.16.0")).judged(given)["gate"]["failing"] == []
    given["targets"][0]["versions"]["keras"] = "3.16.0+local"
    assert gate(until("keras", "3.16.0")).judged(given)["gate"]["failing"] == [A]


def test_one_of_several_targets_that_has_reached_the_release_is_enough() -> None:
    judged = gate(until("keras", "3.16.0")).judged(result(finding(A, "bug", "jax", "new")))
    assert judged["gate"]["failing"] == [A]
    told = f"{A} (slow upstream) counts again: keras 3.16.0 is reached"
    assert told in judged["gate"]["notes"]


def test_a_package_that_nobody_has_is_warned_of() -> None:
    judged = gate(until("kears", "3.16.0")).judged(result(finding(A)))
    assert judged["gate"]["failing"] == []
    (warning,) = judged["warnings"]
    assert "no target says which kears it has" in warning


def test_an_entry_that_did_not_appear_is_stale_unless_the_run_was_stopped() -> None:
    entry = Known(A, "gone?")
    judged = gate(entry).judged(result(finding(B)))
    assert [e["fingerprint"] for e in judged["gate"]["stale"]] == [A]
    assert f"{A} (gone?) did not appear: the entry is stale" in judged["gate"]["notes"]
    assert gate(entry).judged(result(interrupted=True))["gate"]["stale"] == []


def test_without_a_file_nothing_is_said() -> None:
    assert STRICT.judged(result(finding(A)))["gate"] == {
        "fail_on": "any",
        "known_file": None,
        "baseline": None,
        "failing": [A],
        "stale": [],
        "expired": [],
        "notes": [],
    }


GOOD = f'[[known]]\nfingerprint = "{A}"\nreason = "by design"\n'


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    more = f'[[known]]\nfingerprint = "{B}"\nreason = "r"\nlink = "https://example.org"\n'
    path = tmp_path / "known.toml"
    path.write_text(GOOD + more + 'until = "scikit-learn  1.5"\n')
    entries = (
        Known(A, "by design"),
        Known(B, "r", "https://example.org", Until("scikit-learn", "1.5")),
    )
    assert load_known(None, tmp_path) == KnownFile(path, entries)
    assert load_known(None, tmp_path / "elsewhere") == KnownFile()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[known", "could not be read"),
        ("known = 3", "each under a line [[known]]"),
        ("[known]\nreason = 'r'", "each under a line [[known]]"),
        ("known = [3]", "each under a line [[known]]"),
        ("[[knwon]]\nreason = 'r'", "unknown key 'knwon'"),
        (GOOD + "why = 'x'", "unknown key 'why'; known are fingerprint, reason, link, until"),
        ("[[known]]\nreason = 'r'", "received None"),
        ("[[known]]\nfingerprint = 'xyz'\nreason = 'r'", "received 'xyz'"),
        (f"[[known]]\nfingerprint = '{A}'", f"{A} has no reason"),
        (f"[[known]]\nfingerprint = '{A}'\nreason = ' '", "received ' '"),
        (f"[[known]]\nfingerprint = '{A}'\nreason = 3", "received 3"),
        (GOOD + "link = 'javascript:x'", "begins with https://; received 'javascript:x'"),
        (GOOD + "until = 'keras'", "received 'keras'"),
        (GOOD + "until = '3.16.0'", "received '3.16.0'"),
        (GOOD + GOOD, f"{A} twice"),
    ],
)
def test_a_bad_file_is_one_clear_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        load_known(path, tmp_path)
    assert message in str(error.value)
    assert "bad.toml" in str(error.value)


TOML = """
[targets.a]
extends = "fake"
library = "a"
[targets.b]
extends = "fake"
library = "b"
[targets.liar]
extends = "fake"
library = "c"
env = {OUTVOTE_FAKE = "lie:d2"}
"""
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(
    tmp_path: Path,
    fake_model: Path,
    fake_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run a command in a folder with an outvote.toml; returns exit code and all it said."""
    (tmp_path / "outvote.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)

    def outvote(*arguments: str) -> tuple[int, str]:
        code = main(list(arguments))
        said = capsys.readouterr()
        return code, said.out + said.err

    return outvote


CHECK = (
    "check",
    "model.json",
    "--data",
    "data.npz",
    "--targets",
    "a,b,liar",
    "--quiet",
    "--minimise",
    "0",
)


def stored(folder: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((Path(folder) / "result.json").read_text())
    return read


def write_known(fingerprint: str, more: str = "") -> None:
    FILE.write_text(f'[[known]]\nfingerprint = "{fingerprint}"\nreason = "we wait"\n{more}')


@pytest.mark.slow
def test_a_check_passes_when_all_it_finds_is_known(run: Run) -> None:
    assert run(*CHECK)[0] == 1
    (found,) = stored("outvote-out")["findings"]
    write_known(found["fingerprint"], 'link = "https://example.org/7"')
    code, said = run(*CHECK)
    assert code == 0
    assert "known liar differs" in said
    assert "we wait https://example.org/7" in said
    assert "gate 1 finding is known (known.toml)" in said
    result = stored("outvote-out")
    assert result["findings"][0]["known"]["reason"] == "we wait"
    assert result["gate"]["known_file"] == "known.toml"
    assert result["verdict"] == "inconsistent", "what was measured stays what it is"
    for page in ("report.html", "report.md"):
        text = (Path("outvote-out") / page).read_text()
        assert "Known findings" in text
        assert "we wait" in text

    write_known(found["fingerprint"], 'until = "numpy 1.0"')
    code, said = run(*CHECK)
    assert code == 1
    assert "counts again: numpy 1.0 is reached" in said

    write_known(A)
    code, said = run(*CHECK)
    assert code == 1
    assert f"{A} (we wait) did not appear" in said


@pytest.mark.slow
def test_the_file_beside_the_named_configuration_counts_and_known_names_another(run: Run) -> None:
    assert run(*CHECK)[0] == 1
    (found,) = stored("outvote-out")["findings"]
    write_known(found["fingerprint"])
    Path("config").mkdir()
    Path("outvote.toml").rename("config/outvote.toml")
    config = ("--config", "config/outvote.toml")
    assert run(*CHECK, *config)[0] == 1
    assert run(*CHECK, *config, "--known", "known.toml")[0] == 0
    FILE.rename("config/known.toml")
    assert run(*CHECK, *config)[0] == 0
    code, said = run(*CHECK, *config, "--known", "none.toml")
    assert code == 2
    assert "the file none.toml given with --known does not exist" in said


@pytest.mark.slow
def test_fail_on_decides_the_exit_code_of_a_check(run: Run) -> None:
    undecided = (*CHECK, "--targets", "a,liar")
    expected = {"bug": 0, "any": 1}
    assert {word: run(*undecided, "--fail-on", word)[0] for word in expected} == expected
    assert {f["triage"] for f in stored("outvote-out")["findings"]} == {"unknown"}
    code, said = run(*CHECK, "--fail-on", "bug")
    assert code == 1
    code, said = run(*CHECK, "--fail-on", "never")
    assert code == 0
    assert "1 finding is not counted by --fail-on never and does not fail the run" in said


@pytest.mark.slow
def test_what_an_earlier_run_had_found_does_not_fail(run: Run) -> None:
    assert run(*CHECK)[0] == 1
    earlier = ("--baseline", "outvote-out", "--fail-on", "new")
    code, said = run(*CHECK, *earlier, "--out", "again")
    assert code == 0
    assert "1 finding is in the baseline (outvote-out) and does not fail the run" in said
    told = stored("again")["gate"]
    assert (told["baseline"], told["failing"], told["fail_on"]) == ("outvote-out", [], "new")
    assert run("report", "again", "--fail-on", "new")[0] == 0, "the run's own baseline is kept"
    empty = Path("empty.json")
    empty.write_text('{"findings": []}')
    assert run("report", "again", "--fail-on", "new", "--baseline", "empty.json")[0] == 1
    for wrong, message in (
        (("--fail-on", "new"), "name it with --baseline DIR"),
        (("--baseline", "nowhere"), "--baseline nowhere: there is no nowhere"),
        (("--baseline", "outvote.toml"), "outvote.toml is no result of outvote"),
    ):
        code, said = run(*CHECK, *wrong)
        assert code == 2
        assert message in said


@pytest.mark.slow
def test_a_campaign_and_its_report_go_through_the_gate(run: Run) -> None:
    fuzz = ("fuzz", *CHECK[1:], "--budget", "8", "--inputs", "8")
    assert run(*fuzz, "--out", "first")[0] == 1
    found = stored("first")["findings"]
    assert found
    tables = [f'[[known]]\nfingerprint = "{f["fingerprint"]}"\nreason = "r"' for f in found]
    FILE.write_text("\n".join(tables))
    code, said = run(*fuzz, "--out", "second")
    assert code == 0
    assert f"gate {len(found)} finding" in said
    assert "known (known.toml)" in said
    assert all(f["known"] for f in stored("second")["findings"])
    assert "Known findings" in (Path("second") / "report.html").read_text()
    assert "## Known findings" in (Path("second") / "report.md").read_text()

    FILE.write_text("")
    assert run("report", "second")[0] == 0
    assert all(f["known"] for f in stored("second")["findings"]), "it keeps the gate of the run"
    assert run("report", "second", "--fail-on", "any")[0] == 0
    again = ("report", "second", "--known", "known.toml")
    assert run(*again)[0] == 0
    assert not any(f["known"] for f in stored("second")["findings"])
    assert run(*again, "--fail-on", "any")[0] == 1
    assert run(*again, "--fail-on", "never")[0] == 0
    resumed = ("fuzz", "--resume", "second", "--config", "outvote.toml", "--quiet", "--fail-on")
    assert run(*resumed, "never")[0] == 0
    assert run(*resumed, "bug")[0] == 1


@pytest.mark.slow
def test_a_stopped_run_never_passes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that was found before Ctrl-C is known: that is no pass."""
    assert run(*CHECK)[0] == 1
    write_known(stored("outvote-out")["findings"][0]["fingerprint"])

    from outvote.commands.check.run import Check

    def stages(check: Check) -> None:
        real(check)
        raise KeyboardInterrupt

    real = Check.run
    monkeypatch.setattr(Check, "run", stages)
    assert run(*CHECK)[0] == 130
    assert stored("outvote-out")["interrupted"] is True
    assert "stopped early" in Path("outvote-out/junit.xml").read_text()
    assert run(*CHECK, "--known", "/dev/null")[0] == 1


def test_explore_knows_findings_only_between_targets(run: Run) -> None:
    write_known(A)
    arguments = ("explore", "a.keras", "b.keras", "--data", "data.npz", "--known", "known.toml")
    code, said = run(*arguments)
    assert code == 2
    assert "give --targets" in said


@pytest.mark.slow
def test_explore_between_targets_exits_by_the_gate(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search needs gradients, which no fake target has: what it finds is given."""
    checked = ("explore", "model.json", "--data", "data.npz", "--targets", "torch,liar", "--quiet")
    assert run(*CHECK)[0] == 1
    found = stored("outvote-out")
    walked = {"followed": "torch", "before": 0.0, "after": 1.0, "grew": 1}

    def between(job: BetweenTargets, watch: Any) -> dict[str, Any]:
        return job.gate.judged({**found, "distance": walked, "seeds": 1})

    monkeypatch.setattr("outvote.commands.explore.run.run_between", between)
    assert run(*checked)[0] == 1
    write_known(found["findings"][0]["fingerprint"])
    code, said = run(*checked)
    assert code == 0
    assert "known liar differs" in said
