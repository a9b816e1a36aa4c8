"""Findings by their causes: one place in a library may show in many layers, types and parameters.

A maintainer wants to hear of a cause once, the most harmful first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outvote.core.model import digest_of

# Silent wrong numbers are worst: nobody notices. A process that dies takes everything with it.
SYMPTOMS = ("values", "death", "hang", "nan", "shape", "error", "type", "performance")
_TRIAGES = ("bug", "unknown", "difference", "precision")
_DEEDS = {"inconsistency": "values", "crash": "error", "illegal": "error"}  # as far as kinds tell

Result = Mapping[str, Any]


def causes_of(findings: Sequence[Result]) -> list[dict[str, Any]]:
    """One entry for each cause, most harmful first; precision is no cause."""
    grouped: dict[str, list[Result]] = {}
    for finding in findings:
        if finding["triage"] != "precision":
            grouped.setdefault(cause_key(finding), []).append(finding)
    return sorted((_cause(key, found) for key, found in grouped.items()), key=_harm)


def cause_key(finding: Result) -> str:
    """Findings of one key have one cause: the same place, or where none is known, itself."""
    place = finding.get("place")
    if place is None:
        return str(finding["fingerprint"])
    who = finding["accused"] or sorted(finding["targets"])
    return digest_of(who, symptom_of(finding), place["file"], place["function"])[:12]


def symptom_of(finding: Result) -> str:
    return str(finding.get("symptom") or _DEEDS.get(finding["kind"], finding["kind"]))


def place_told(place: Result | None) -> str:
    """Where a function stands, and what it was given."""
    if place is None:
        return ""
    return f"{place['function']}({place['arguments']}), {place['file']}:{place['line']}"


def _cause(key: str, findings: Sequence[Result]) -> dict[str, Any]:
    """Told by the finding that is worst, and of these by the smallest."""
    first = min(findings, key=lambda f: (_place(f["triage"], _TRIAGES), _size(f)))
    return {
        "cause": key,
        "title": first["title"],
        "symptom": symptom_of(first),
        "triage": first["triage"],
        "accused": first["accused"],
        "place": first.get("place"),
        "layers": sorted({f["layer_kind"] for f in findings if f["layer_kind"]}),
        "findings": [f["fingerprint"] for f in findings],
        "told_by": first["fingerprint"],
        "count": sum(f.get("count") or 1 for f in findings),
    }


def _harm(cause: Result) -> tuple[int, int, int, str]:
    triage, symptom = _place(cause["triage"], _TRIAGES), _place(cause["symptom"], SYMPTOMS)
    return triage, symptom, -cause["count"], cause["cause"]


def _size(finding: Result) -> int:
    minimal = finding.get("minimal")
    return int(minimal["numbers"]) if minimal else 1 << 30


def _place(word: str, words: tuple[str, ...]) -> int:
    return words.index(word) if word in words else len(words)
