"""`report.md`: the short form, for terminals and pull requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outvote.report import wording
from outvote.report.pages import page_of
from outvote.report.tables import code, escape

FILE = "report.md"
MARKS = {"good": "✅ ", "bad": "❌ ", "warn": "⚠️ "}


def render(result: dict[str, Any], folder: Path) -> str:
    """The verdict as a head, then the sections of the command's page."""
    parts = [head(result), *page_of(result).sections(result)]
    return "\n\n".join(part for part in parts if part) + "\n"


def head(result: dict[str, Any]) -> str:
    """What happened, what weakens it, and of what this is the report."""
    model, data, gate = (result.get(key) or {} for key in ("model", "data", "gate"))
    facts = [
        f"model {code(model['name'])}" if model else "",
        f"{data['instances']} inputs" if data else "",
        f"outvote {escape(result['outvote'])} {escape(result['command'])}",
        wording.duration(result["seconds"]),
    ]
    lines = [
        f"# {MARKS.get(wording.tone(result), '')}{escape(wording.word(result).capitalize())}",
        f"**{escape(result['summary'])}**",
        *(f"> Warning: {escape(warning)}." for warning in result["warnings"]),
        *(f"> Gate: {escape(note)}." for note in gate.get("notes", [])),
        " · ".join(fact for fact in facts if fact),
    ]
    return "\n\n".join(lines)
