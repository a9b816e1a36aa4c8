"""One gate, told alike by the exit code, junit.xml, results.sarif, report.md and report.html."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import report_example
from every_command import RESULTS
from outvote.commands.codes import exit_code
from outvote.commands.terminal import gate_lines, new_ones
from outvote.findings.gate import FAIL_ON, Gate, counts
from outvote.findings.known import Known, KnownFile, Until, known_of
from outvote.report import rendered
from outvote.report.formats.sarif import LEVELS

TRIAGES = ("bug", "difference", "unknown", "precision", "unsupported")
FILE = Path("known.toml")
PRINTS = tuple(f"{number:012x}" for number in range(1, 7))
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=8)


@st.composite
def results(draw: st.DrawFn) -> dict[str, Any]:
    """A check with some findings of any triage."""
    base = report_example.inconsistent()
    (shown,) = base["findings"]
    prints = draw(st.lists(st.sampled_from(PRINTS), unique=True, max_size=5))
    findings = [
        {**shown, "fingerprint": one, "triage": draw(st.sampled_from(TRIAGES)), "known": None}
        for one in prints
    ]
    return {**base, "findings": findings, "interrupted": draw(st.booleans())}


@st.composite
def gates(draw: st.DrawFn) -> Gate:
    prints = draw(st.lists(st.sampled_from(PRINTS), unique=True, max_size=4))
    until = st.sampled_from([None, Until("keras", "0.1"), Until("keras", "99.0"), Until("x", "1")])
    entries = tuple(Known(one, draw(TEXTS), None, draw(until)) for one in prints)
    return Gate(KnownFile(FILE, entries), draw(st.sampled_from(FAIL_ON)))


@settings(max_examples=20)
@given(results(), gates())
@pytest.mark.slow
def test_every_format_counts_alike(result: dict[str, Any], gate: Gate) -> None:
    judged = gate.judged(result)
    findings, failing = judged["findings"], judged["gate"]["failing"]
    known = [f for f in findings if f["known"]]
    expected = 1 if failing else 130 if result["interrupted"] else 0
    assert exit_code(judged) == expected

    suite = ElementTree.fromstring(rendered("junit", judged))[0]
    cases = [c for c in suite if c.get("classname") == "outvote.findings"]
    assert len(cases) == len(findings)
    assert sum(c.find("failure") is not None for c in cases) == len(failing)
    assert sum(c.find("skipped") is not None for c in cases) == len(known)
    assert (suite.get("errors") != "0") == result["interrupted"]

    (run,) = json.loads(rendered("sarif", judged))["runs"]
    told = run["results"]
    assert [r["partialFingerprints"]["outvoteFingerprint/v1"] for r in told] == [
        f["fingerprint"] for f in findings
    ]
    assert sum("suppressions" in r for r in told) == len(known)
    assert [r["level"] for r in told] == [LEVELS.get(f["triage"], "note") for f in findings]
    assert all(run["tool"]["driver"]["rules"][r["ruleIndex"]]["id"] == r["ruleId"] for r in told)
    assert run["invocations"] == [{"executionSuccessful": not result["interrupted"]}]

    page = rendered("markdown", judged)
    assert all(f["fingerprint"] in page for f in findings)
    assert ("Known findings" in page) == bool(known)
    lines = gate_lines(judged)
    assert sum(line.startswith("[bold]known[/]") for line in lines) == len(known)
    assert len(new_ones(judged)) == len(findings) - len(known)


@pytest.mark.parametrize("silenced", [0, 1, 2])
def test_the_page_shows_findings_and_what_is_known_of_them(silenced: int) -> None:
    base = report_example.inconsistent()
    (shown,) = base["findings"]
    findings = [{**shown, "fingerprint": one} for one in PRINTS[:2]]
    entries = tuple(Known(one, f"why {one}", None, None) for one in PRINTS[:silenced])
    judged = Gate(KnownFile(FILE, entries)).judged({**base, "findings": findings})
    page = rendered("html", judged)
    assert all(f["fingerprint"] in page for f in findings)
    assert ("Known findings" in page) == bool(silenced)
    assert [f"why {one}" in page for one in PRINTS[:2]] == [silenced > 0, silenced > 1]


@settings(max_examples=25)
@given(results(), gates())
def test_what_fails_is_new_and_counts_and_is_nothing_else(
    result: dict[str, Any], gate: Gate
) -> None:
    judged = gate.judged(result)
    silent = {f["fingerprint"] for f in judged["findings"] if f["known"]}
    counted = {f["fingerprint"] for f in result["findings"] if counts(f["triage"], gate.fail_on)}
    assert set(judged["gate"]["failing"]) == counted - silent
    entries = {entry.fingerprint for entry in gate.known.entries}
    expired = {told["fingerprint"] for told in judged["gate"]["expired"]}
    met = {f["fingerprint"] for f in result["findings"]}
    assert silent == (entries & met) - expired
    stale = {told["fingerprint"] for told in judged["gate"]["stale"]}
    assert stale == (set() if result["interrupted"] else entries - met)


@settings(max_examples=20)
@given(results(), gates())
def test_judging_changes_nothing_but_what_it_adds_and_may_be_done_again(
    result: dict[str, Any], gate: Gate
) -> None:
    before = json.dumps(result, sort_keys=True)
    judged = gate.judged(result)
    assert json.dumps(result, sort_keys=True) == before
    again = gate.judged({**judged, "warnings": result["warnings"]})
    assert again == judged
    turned = gate.judged({**result, "findings": result["findings"][::-1]})
    assert sorted(turned["gate"]["failing"]) == sorted(judged["gate"]["failing"])
    assert turned["gate"]["stale"] == judged["gate"]["stale"]


@settings(max_examples=25)
@given(gates())
def test_a_gate_is_stored_whole(gate: Gate) -> None:
    assert Gate.restored(json.loads(json.dumps(gate.stored()))) == gate


@pytest.mark.parametrize("fail_on", FAIL_ON)
@pytest.mark.parametrize("triage", TRIAGES)
def test_the_table_of_what_counts(triage: str, fail_on: str) -> None:
    """Stricter words count all that milder ones count; what is explained never counts."""
    strict = {"never": 0, "bug": 1, "difference": 2, "any": 3, "new": 3}
    wanted = {"bug": 1, "difference": 2, "unknown": 3}.get(triage, 9)
    assert counts(triage, fail_on) == (strict[fail_on] >= wanted)


def test_an_entry_for_a_package_that_nobody_has_is_a_warning() -> None:
    base = report_example.inconsistent()
    one = base["findings"][0]["fingerprint"]
    gate = Gate(KnownFile(FILE, (Known(one, "r", None, Until("theano", "9")),)))
    judged = gate.judged(base)
    (warning,) = judged["warnings"][len(base["warnings"]) :]
    assert warning == (
        f"known.toml silences {one} until theano 9, but no target says which theano it has"
    )
    assert judged["gate"]["failing"] == []


@pytest.mark.parametrize("text", ["keras 3.16.0", "tensorflow-cpu 2.18", "a_b.c 1rc1", None])
def test_an_entry_is_read_again_as_it_was_told(text: str | None) -> None:
    data = {"fingerprint": PRINTS[0], "reason": "r", "link": None, "until": text}
    entry = known_of(data)
    assert (str(entry.until) if entry.until else None) == text


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_without_a_gate_the_verdict_is_what_every_format_tells(name: str) -> None:
    result = {**RESULTS[name], "gate": None, "findings": []}
    bad = result["verdict"] in ("inconsistent", "changed")
    assert exit_code({**result, "comparison": None}) == (1 if bad else 0)
    suite = ElementTree.fromstring(rendered("junit", result))[0]
    assert int(suite.get("failures", "")) == bad
    (run,) = json.loads(rendered("sarif", result))["runs"]
    assert len(run["results"]) == bad
