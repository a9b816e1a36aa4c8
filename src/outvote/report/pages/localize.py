"""The page of `localize`: suspected layers of each pair, and the parameters to blame."""

from __future__ import annotations

from typing import Any

from outvote.report.page import Page
from outvote.report.tables import code, escape, section, table, targets_section
from outvote.report.wording import number, some

_HEADINGS = ("layer", "kind", "change rate", "cause", "they agree with")


def page(result: dict[str, Any]) -> Page:
    return Page()


def sections(result: dict[str, Any]) -> list[str]:
    return [*map(_pair, result["pairs"]), targets_section(result["targets"])]


def _pair(pair: dict[str, Any]) -> str:
    rows = [row for suspect in pair["suspects"] for row in _rows(suspect)]
    lines = table(_HEADINGS, rows) if rows else ["No layer is suspected.", ""]
    above = f"Above CRADLE's third quartile: {some(pair['cradle']) or 'no layer'}."
    return section(f"{' / '.join(pair['targets'])}, input {pair['input']}", [*lines, escape(above)])


def _rows(suspect: dict[str, Any]) -> list[list[Any]]:
    rate = "∞" if suspect["rate"] is None else number(suspect["rate"])
    first = [code(suspect["layer"]), suspect["layer_kind"], rate]
    if suspect["same_as"]:
        return [[*first, f"as {suspect['same_as']}", ""]]
    told = [
        [*first, code(f"{c['parameter']}={c['value']!r}"), ", ".join(map(repr, c["cured_by"]))]
        for c in suspect["causes"]
    ]
    return told or [[*first, "no single parameter", ""]]
