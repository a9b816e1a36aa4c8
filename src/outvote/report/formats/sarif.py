"""`results.sarif`: findings for code scanning, in SARIF 2.1.0 (OASIS standard, 27 March 2020).

A rule is a kind of layer with a kind of failure. The level follows the triage; a known finding is
a suppressed result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from outvote.report import wording

Data = dict[str, Any]

FILE = "results.sarif"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"bug": "error", "difference": "warning", "unknown": "warning"}
_TOLD = ("triage", "kind", "accused", "targets", "layer", "layer_kind", "parameters", "distance")


def render(result: Data, folder: Path) -> str:
    """The log as text."""
    return json.dumps(log(result, folder), allow_nan=False, indent=1) + "\n"


def log(result: Data, folder: Path) -> Data:
    """The log as plain data."""
    told = [*result["findings"], *_verdict(result)]
    rules = list(dict.fromkeys(_rule(item) for item in told))
    driver = {
        "name": "outvote",
        "version": result["outvote"],
        "rules": [_described(*rule) for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"outvote/{result['command']}/"},
        "invocations": [{"executionSuccessful": not result["interrupted"]}],
        "results": [_result(item, rules, result, folder) for item in told],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _verdict(result: Data) -> list[Data]:
    """Of a command without findings, its verdict as one, where it is bad."""
    if result["gate"] is not None or wording.tone(result) != "bad":
        return []
    of_what = [result.get(key) for key in ("model", "models", "bisect")]
    paths = [x.get("path") or x.get("case") for x in _listed(of_what)]
    identity = hashlib.sha256(f"{result['command']} {paths}".encode()).hexdigest()
    return [
        {
            "kind": result["verdict"],
            "layer_kind": result["command"],
            "title": result["summary"].rstrip("."),
            "reason": f"By outvote {result['command']}.",
            "triage": "unknown",
            "fingerprint": identity[:12],
        }
    ]


def _listed(found: list[Any]) -> Iterator[Data]:
    """Objects, of lists of them or alone."""
    for item in found:
        yield from item if isinstance(item, list) else [item] if item else []


def _rule(item: Data) -> tuple[str, str]:
    return item.get("layer_kind") or "model", item["kind"]


def _described(where: str, kind: str) -> Data:
    return {
        "id": f"{where}/{kind}",
        "shortDescription": {"text": f"{kind} in {where}"},
    }


def _result(item: Data, rules: list[tuple[str, str]], result: Data, folder: Path) -> Data:
    where, kind = _rule(item)
    found = {
        "ruleId": f"{where}/{kind}",
        "ruleIndex": rules.index((where, kind)),
        "level": LEVELS.get(item["triage"], "note"),
        "message": {"text": f"{item['title']}. {item['reason']}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(_place(item, result, folder))},
                    "region": {"startLine": 1},
                }
            }
        ],
        "partialFingerprints": {"outvoteFingerprint/v1": item["fingerprint"]},
        "properties": {key: item.get(key) for key in _TOLD},
    }
    known = item.get("known")
    if known:
        why = " ".join(filter(None, (known["reason"], known.get("link"))))
        found["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return found


def _place(item: Data, result: Data, folder: Path) -> Path:
    """The script that proves it; without one, the model; of a campaign, the result."""
    if item.get("repro"):
        return folder / str(item["repro"])
    path = (result.get("model") or {}).get("path")
    return Path(path) if path else folder / "result.json"


def _uri(path: Path) -> str:
    """Relative to the current folder where it lies in there: in CI that is the repository."""
    here = Path.cwd()
    if path.is_absolute():
        if not path.is_relative_to(here):
            return path.as_uri()
        path = path.relative_to(here)
    return quote(path.as_posix())
