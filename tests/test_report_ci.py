"""`junit.xml` and `results.sarif`: what CI servers read, valid whatever the messages hold."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import junitparser
import pytest
import yaml

import report_example
from every_command import RESULTS
from outvote.cli import _parser
from outvote.findings.gate import STRICT, Gate
from outvote.findings.known import Known, KnownFile
from outvote.report import rendered

ROOT = Path(__file__).parent.parent
BUG, OTHER = "9f2c5a7be013", "0123456789ab"
KNOWN = Gate(KnownFile(Path("known.toml"), (Known(BUG, "we wait", "https://example.org/7"),)))


def cases(result: dict[str, Any], folder: Path) -> dict[str, ElementTree.Element]:
    root = ElementTree.fromstring(rendered("junit", result, folder))
    (suite,) = root
    found = suite.findall("testcase")
    counts = {"failures": "testcase/failure", "errors": "testcase/error"}
    for element, counted in ((root, counts), (suite, {**counts, "skipped": "testcase/skipped"})):
        assert int(element.get("tests", "")) == len(found)
        for name, tag in counted.items():
            assert int(element.get(name, "")) == len(suite.findall(tag))
    return {case.get("name", ""): case for case in found}


def outcome(case: ElementTree.Element) -> str:
    return next((child.tag for child in case if child.tag != "system-out"), "passed")


def test_findings_that_fail_the_run_are_failures_with_reason_and_repro(tmp_path: Path) -> None:
    found = cases(STRICT.judged(report_example.inconsistent()), tmp_path)
    case = found[f"BatchNormalization inconsistency patched {BUG}"]
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("message") == "bug: patched is outvoted in BatchNormalization"
    assert "agree within 4.1e-05" in (failure.text or "")
    assert f"repro: python {tmp_path}/findings/{BUG}/repro.py" in (failure.text or "")
    assert outcome(found["tensorflow / jax"]) == "passed"
    assert outcome(found["tensorflow / patched"]) == "skipped", "it fails once, as a finding"
    assert [name for name in found if outcome(found[name]) == "failure"] == [case.get("name")]


def test_known_findings_are_skipped_and_uncounted_ones_pass(tmp_path: Path) -> None:
    found = cases(KNOWN.judged(report_example.inconsistent()), tmp_path)
    skipped = found[f"BatchNormalization inconsistency patched {BUG}"].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "known: we wait https://example.org/7"
    assert "failure" not in {outcome(case) for case in found.values()}

    found = cases(Gate(fail_on="never").judged(report_example.inconsistent()), tmp_path)
    case = found[f"BatchNormalization inconsistency patched {BUG}"]
    assert outcome(case) == "passed"
    assert "bug: patched is outvoted" in (case.findtext("system-out") or "")


def test_a_target_that_did_not_finish_is_skipped_and_a_stop_is_an_error(tmp_path: Path) -> None:
    found = cases(STRICT.judged(report_example.crash()), tmp_path)
    assert outcome(found["openvino"]) == "skipped"
    assert outcome(found["the run came to its end"]) == "passed"
    stopped = report_example.consistent() | {"verdict": "interrupted", "interrupted": True}
    found = cases(STRICT.judged(stopped), tmp_path)
    assert outcome(found["the run came to its end"]) == "error"


def read_sarif(result: dict[str, Any], folder: Path) -> Any:
    log = json.loads(rendered("sarif", result, folder))
    require_sarif(log)
    (run,) = log["runs"]
    return run


def require_sarif(log: Any) -> None:
    """What SARIF 2.1.0 requires of the objects that we write (sections 3.13 to 3.54)."""
    assert log.keys() == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    for run in log["runs"]:
        assert run["tool"]["driver"]["name"]
        rules = run["tool"]["driver"]["rules"]
        identities = [rule["id"] for rule in rules]
        assert len(set(identities)) == len(identities)
        assert all(rule["shortDescription"]["text"] for rule in rules)
        assert run["automationDetails"]["id"]
        assert all(type(i["executionSuccessful"]) is bool for i in run["invocations"])
        for found in run["results"]:
            assert found["message"]["text"]
            assert found["level"] in ("none", "note", "warning", "error")
            assert identities[found["ruleIndex"]] == found["ruleId"]
            assert all(type(v) is str for v in found["partialFingerprints"].values())
            for place in found["locations"]:
                assert " " not in place["physicalLocation"]["artifactLocation"]["uri"]
                assert place["physicalLocation"]["region"]["startLine"] >= 1
            for suppression in found.get("suppressions", []):
                assert suppression["kind"] in ("inSource", "external")
                assert suppression["status"] in ("accepted", "underReview", "rejected")


def test_levels_follow_the_triage_and_rules_are_layer_and_kind(tmp_path: Path) -> None:
    result = report_example.two_maps()
    run = read_sarif(STRICT.judged(result), tmp_path)
    assert [found["level"] for found in run["results"]] == ["error", "warning"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        "BatchNormalization/inconsistency"
    ]
    prints = [found["partialFingerprints"]["outvoteFingerprint/v1"] for found in run["results"]]
    assert prints == [BUG, OTHER]
    result["findings"][0]["triage"] = "precision"
    assert read_sarif(STRICT.judged(result), tmp_path)["results"][0]["level"] == "note"


def test_the_place_is_the_repro_else_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def uri(result: dict[str, Any], folder: Path) -> str:
        (found,) = read_sarif(result, folder)["results"]
        address: str = found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        return address

    monkeypatch.chdir(tmp_path)
    result = STRICT.judged(report_example.inconsistent())
    script = f"my%20out/findings/{BUG}/repro.py"
    assert uri(result, Path("my out")) == script
    assert uri(result, tmp_path / "my out") == script
    elsewhere = tmp_path / "here"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert uri(result, tmp_path / "my out") == f"{tmp_path.as_uri()}/{script}"
    result["findings"][0]["repro"] = None
    assert uri(result, Path("out")) == "models/small_resnet.keras"
    del result["model"]
    assert uri(result, Path("out")) == "out/result.json"


def test_a_known_finding_is_a_suppressed_result(tmp_path: Path) -> None:
    (found,) = read_sarif(KNOWN.judged(report_example.inconsistent()), tmp_path)["results"]
    (suppression,) = found["suppressions"]
    assert suppression["justification"] == "we wait https://example.org/7"
    (found,) = read_sarif(STRICT.judged(report_example.inconsistent()), tmp_path)["results"]
    assert "suppressions" not in found


def test_names_from_outside_and_broken_bytes_stay_text(tmp_path: Path) -> None:
    result = STRICT.judged(report_example.hostile())
    result["findings"][0]["title"] += "\x00\x1b[31m" + b"\xff".decode("utf-8", "surrogateescape")
    result["targets"][0]["outcome"] = "crash"
    result["targets"][0]["message"] = "died\x07"
    found = cases(result, tmp_path)
    messages = [child.get("message", "") for case in found.values() for child in case]
    assert any(report_example.HOSTILE in message for message in messages)
    assert any("\\x00\\x1b[31m\\xdcff" in message for message in messages)
    assert "crash: died\\x07" in messages
    (one,) = read_sarif(result, tmp_path)["results"]
    assert report_example.HOSTILE in one["message"]["text"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("bisect", "failure"), ("nan", "failure"), ("localize", "failure"), ("pollution", "failure")],
)
def test_a_command_without_findings_passes_or_fails_by_its_verdict(
    name: str, expected: str, tmp_path: Path
) -> None:
    result = RESULTS[name]
    case = cases(result, tmp_path)[f"the verdict of {name}"]
    assert outcome(case) == expected
    (found,) = read_sarif(result, tmp_path)["results"]
    assert found["level"] == "warning"
    assert found["ruleId"] == f"{name}/{result['verdict']}"
    good = {**result, "verdict": "unchanged" if name == "bisect" else "consistent"}
    assert outcome(cases(good, tmp_path)[f"the verdict of {name}"]) == "passed"
    assert read_sarif(good, tmp_path)["results"] == []


def test_where_nothing_is_judged_nothing_fails(tmp_path: Path) -> None:
    for name in ("coverage", "report"):
        assert list(cases(RESULTS[name], tmp_path)) == ["the run came to its end"]
        assert read_sarif(RESULTS[name], tmp_path)["results"] == []


@pytest.mark.parametrize("name", RESULTS)
def test_another_reader_of_junit_counts_the_same(name: str, tmp_path: Path) -> None:
    (read,) = junitparser.JUnitXml.fromstring(rendered("junit", RESULTS[name], tmp_path).encode())
    told = (read.tests, read.failures, read.errors, read.skipped)
    read.update_statistics()
    assert told == (read.tests, read.failures, read.errors, read.skipped)


def test_the_action_runs_a_command_that_there_is() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    named = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text()))
    assert named == action["inputs"].keys()
    (run,) = [step["run"] for step in action["runs"]["steps"] if "outvote $" in step.get("run", "")]
    assert "--out" in run
    guide = (ROOT / "docs" / "gate.md").read_text()
    for name, told in action["inputs"].items():
        assert f"| `{name}` |" in guide
        assert told.get("required") or f"`{told['default']}` |" in guide
    (example,) = re.findall(r"command: (.+)", guide)
    _parser().parse_args([*shlex.split(example), "--quiet", "--out", "o"])
