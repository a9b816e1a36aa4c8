"""`junit.xml`: what CI servers show as tests. One test case per finding and per pair that agrees.

A finding fails its case if it fails the run; a known one is skipped, with its reason. Commands
without findings have a test case for their verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml  # writes only, reads nothing

from outvote.report import wording

FILE = "junit.xml"
# What XML 1.0 cannot hold, not even escaped; messages of crashed processes are full of it.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(result: dict[str, Any], folder: Path) -> str:
    """The XML as text."""
    cases = [
        _run(result),
        *_verdict(result),
        *(_finding(item, result, folder) for item in result["findings"]),
        *_pairs(result),
        *_gaps(result),
    ]

    def counted(tag: str) -> str:
        return str(sum(case.find(tag) is not None for case in cases))

    counts = {
        "tests": str(len(cases)),
        "failures": counted("failure"),
        "errors": counted("error"),
        "time": f"{result['seconds']:.3f}",
    }
    suites = Xml.Element("testsuites", {"name": "outvote", **counts})
    told = {"name": f"outvote {result['command']}", **counts, "skipped": counted("skipped")}
    suite = Xml.SubElement(suites, "testsuite", told)
    suite.extend(cases)
    Xml.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(suites, encoding="unicode")}\n'


def _case(group: str, name: str) -> Xml.Element:
    return Xml.Element("testcase", classname=f"outvote.{group}", name=_text(name))


def _add(case: Xml.Element, tag: str, message: str, text: str = "") -> None:
    Xml.SubElement(case, tag, message=_text(message)).text = _text(text) or None


def _run(result: dict[str, Any]) -> Xml.Element:
    """A run that was stopped has shown nothing by what it did not find."""
    case = _case("run", "the run came to its end")
    if result["interrupted"]:
        _add(case, "error", "stopped early", result["summary"])
    return case


def _verdict(result: dict[str, Any]) -> Iterator[Xml.Element]:
    """Where no gate judges findings, the verdict is what passes or fails."""
    if result["gate"] is None and result["verdict"] is not None:
        case = _case("verdict", f"the verdict of {result['command']}")
        if wording.tone(result) == "bad":
            _add(case, "failure", f"{wording.word(result)}: {result['summary']}")
        yield case


def _finding(item: dict[str, Any], result: dict[str, Any], folder: Path) -> Xml.Element:
    """Its name holds no figure, so that a CI server knows the case again."""
    where = item.get("layer_kind") or "model"
    who = item.get("accused") or "undecided"
    case = _case("findings", f"{where} {item['kind']} {who} {item['fingerprint']}")
    told = [item["reason"], f"targets: {', '.join(item['targets'])}"]
    if item.get("repro"):
        told.append(f"repro: python {folder / item['repro']}")
    known = item.get("known")
    if known:
        link = f" {known['link']}" if known.get("link") else ""
        _add(case, "skipped", f"known: {known['reason']}{link}")
    elif item["fingerprint"] in result["gate"]["failing"]:
        _add(case, "failure", f"{item['triage']}: {item['title']}", "\n".join(told))
    else:
        output = [f"{item['triage']}: {item['title']}", *told]
        Xml.SubElement(case, "system-out").text = _text("\n".join(output))
    return case


def _pairs(result: dict[str, Any]) -> Iterator[Xml.Element]:
    """What makes a pair differ are the findings: the pair does not fail a second time."""
    for pair in result.get("comparisons") or []:
        case = _case("pairs", " / ".join(pair["targets"]))
        label = wording.label(pair)
        if label == "inconsistent":
            _add(case, "skipped", "inconsistent: see the findings")
        yield case


def _gaps(result: dict[str, Any]) -> Iterator[Xml.Element]:
    """Targets that did not finish were compared with nobody."""
    for target in result["targets"]:
        if target.get("outcome", "ok") != "ok":
            case = _case("targets", target["name"])
            _add(case, "skipped", f"{target['outcome']}: {target.get('message') or 'no message'}")
            yield case


def _text(value: str) -> str:
    return _NOT_XML.sub(lambda found: f"\\x{ord(found[0]):02x}", value)
