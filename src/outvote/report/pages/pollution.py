"""The page of `pollution`: inputs that split the models, and the training samples like them."""

from __future__ import annotations

from typing import Any

from outvote.report.page import Page
from outvote.report.tables import section, table, targets_section
from outvote.report.wording import number, share

_SHOWN = 20


def page(result: dict[str, Any]) -> Page:
    return Page()


def sections(result: dict[str, Any]) -> list[str]:
    return [_evidence(result["evidence"]), _suspects(result), targets_section(result["targets"])]


def _evidence(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    told = (
        f"{share(found['moved'])} of confidence has moved from {found['true']} to "
        f"{found['false']}; {found['inputs']} inputs split the models that way."
    )
    return section("Evidence", [told])


def _suspects(result: dict[str, Any]) -> str:
    found = list(zip(result["suspects"], map(number, result["scores"]), strict=True))
    if not found:
        return ""
    title = f"Suspects, likest first ({min(len(found), _SHOWN)} of {len(found)})"
    return section(title, table(("sample", "score"), found[:_SHOWN]))
