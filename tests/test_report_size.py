"""`report.html` of hundreds of findings: the worst first, a table, a filter, and a bound."""

from __future__ import annotations

import re
from typing import Any

import pytest

import report_example
from every_command import RESULTS
from outvote.core.causes import causes_of
from outvote.core.harm import harm
from outvote.report import rendered
from outvote.report.pages.check.view import MAP_BYTES, page

TRIAGES = ("precision", "unknown", "bug", "difference")
KINDS = ("performance", "inconsistency", "nan", "crash")


def many(number: int, /, **more: Any) -> list[dict[str, Any]]:
    """Findings as large as real ones, in no good order."""
    (example,) = report_example.inconsistent()["findings"]
    return [
        example
        | {
            "fingerprint": f"{n:012x}",
            "triage": TRIAGES[n % 4],
            "kind": KINDS[n // 4 % 4],
            "title": f"target{n % 7} differs by 0.0{n} (relative) in Dense layer 'dense_{n}'",
            "reason": "2 independent implementations agree: jax, numpy against torch. " * 5,
            "known": None,
        }
        | more
        for n in range(number)
    ]


def campaign(count: int) -> dict[str, Any]:
    steps = [{"mutant": n, "rule": "LA", "new": "Dense Conv2D", "acc": 0.1} for n in range(80)]
    bred = {
        "count": 3,
        "first": 9,
        "last": 9,
        "first_at": 1.0,
        "last_at": 2.0,
        "found_by": "mutant",
    }
    findings = many(count, lineage=steps, **bred)
    for line, finding in enumerate(findings):
        here = {"function": f"keras.src.ops.numpy.some{line // 2}", "line": line, "error": None}
        place = {"file": "keras/src/ops/numpy.py", "arguments": "x: float32(2, 3), axis=-1"}
        finding["place"] = {**here, **place}
    return RESULTS["fuzz"] | {"findings": findings, "causes": causes_of(findings)}


def check(count: int) -> dict[str, Any]:
    return report_example.inconsistent() | {"findings": many(count)}


@pytest.mark.slow
@pytest.mark.parametrize("result", [campaign(500), check(500)], ids=["fuzz", "check"])
def test_five_hundred_findings_take_less_than_two_megabytes(result: dict[str, Any]) -> None:
    text = rendered("html", result)
    assert len(text.encode()) <= 2_000_000
    assert len(re.findall("<article", text)) >= 500
    sections = re.findall(r'<section id="([\w-]+)"[^>]*>\s*<h2>', text)
    (contents,) = re.findall(r'<nav id="contents".*?</nav>', text, re.DOTALL)
    assert re.findall(r'href="#([\w-]+)"', contents) == sections
    assert sections[0] == ("by-cause" if result["command"] == "fuzz" else "findings")
    assert 'id="sift"' in text
    assert "69 more" in text or result["command"] == "check", "a long lineage is cut in the middle"


@pytest.mark.parametrize("result", [campaign(40), check(40)], ids=["fuzz", "check"])
def test_the_most_harmful_come_first(result: dict[str, Any]) -> None:
    text = rendered("html", result)
    places = {f["fingerprint"]: harm(f["triage"], f["kind"]) for f in result["findings"]}
    for pattern in (r'<article class="finding [^"]*" id="finding-(\w+)"', r'<tr data-row="(\w+)"'):
        found = [places[fingerprint] for fingerprint in re.findall(pattern, text)]
        assert len(found) == 40
        assert found == sorted(found)


@pytest.mark.slow
def test_maps_beyond_the_bound_are_named_and_one_is_always_drawn() -> None:
    shown = page(check(500))
    assert 1 < len(shown.values["maps"]) < 500
    assert shown.values["unmapped"] == 500 - len(shown.values["maps"])
    assert "shows those of the other" in rendered("html", check(500))
    large = report_example.big(5000)
    assert len(str(large["findings"][0]["localization"])) > MAP_BYTES
    assert len(page(large).values["maps"]) == 1


@pytest.mark.parametrize(("count", "has"), [(3, False), (4, True)])
def test_few_findings_need_no_table(count: int, has: bool) -> None:
    for result in (campaign(count), check(count)):
        text = rendered("html", result)
        assert ('id="causes"' in text) is has
        assert ('getElementById("sift")' in text) is has
