"""What others read is held against their own schemas (tests/schemas): CI servers, code scanning."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft4Validator, Draft7Validator, ValidationError
from xmlschema import XMLSchema, XMLSchemaValidationError

import report_example
from every_command import RESULTS
from outvote.findings.gate import STRICT, Gate
from outvote.findings.known import Known, KnownFile
from outvote.report import rendered

ROOT = Path(__file__).parent.parent
SCHEMAS = ROOT / "tests" / "schemas"
KNOWN = Gate(KnownFile(Path("known.toml"), (Known("9f2c5a7be013", "we wait"),)))
JUDGED = {
    "failing": STRICT.judged(report_example.inconsistent()),
    "known": KNOWN.judged(report_example.inconsistent()),
    "crash": STRICT.judged(report_example.crash()),
    "hostile": STRICT.judged(report_example.hostile()),
    **RESULTS,
}


def schema(name: str) -> Any:
    return json.loads((SCHEMAS / name).read_text(encoding="utf-8"))


SARIF = Draft4Validator(schema("sarif-2.1.0-rtm.5.json"))
JUNIT = XMLSchema(SCHEMAS / "junit-10.xsd")


@pytest.mark.parametrize("name", JUDGED)
def test_results_are_valid_sarif_and_junit(name: str, tmp_path: Path) -> None:
    SARIF.validate(json.loads(rendered("sarif", JUDGED[name], tmp_path)))
    JUNIT.validate(rendered("junit", JUDGED[name], tmp_path))


def test_what_sarif_requires_is_missed(tmp_path: Path) -> None:
    log = json.loads(rendered("sarif", JUDGED["known"], tmp_path))
    assert any("suppressions" in found for found in log["runs"][0]["results"])
    del log["runs"][0]["tool"]
    with pytest.raises(ValidationError, match="'tool' is a required property"):
        SARIF.validate(log)


def test_what_junit_does_not_know_is_refused(tmp_path: Path) -> None:
    text = rendered("junit", JUDGED["failing"], tmp_path)
    with pytest.raises(XMLSchemaValidationError, match="Unexpected child with tag 'blamed'"):
        JUNIT.validate(text.replace("<failure ", "<blamed ").replace("</failure>", "</blamed>"))


def test_the_action_is_one_by_the_schema_of_github_actions() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    github = Draft7Validator(schema("github-action.json"))
    github.validate(action)
    del action["runs"]["steps"][1]["shell"]
    with pytest.raises(ValidationError):
        github.validate(action)


def test_the_job_of_the_guide_is_one_by_the_schema_of_gitlab() -> None:
    guide = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"## GitLab\n+```yaml\n(.*?)```", guide, flags=re.DOTALL)
    job = yaml.safe_load(text)
    gitlab = Draft7Validator(schema("gitlab-ci.json"))
    gitlab.validate(job)
    job["outvote"]["artifacts"]["when"] = "now and then"
    with pytest.raises(ValidationError):
        gitlab.validate(job)
