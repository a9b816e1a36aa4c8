"""Two runs held against each other: what is new, gone, changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from outvote.serve.desk import Desk

Row = dict[str, Any]
_TOLD = {"triage": "verdict", "kind": "kind", "accused": "accused", "layer_kind": "layer"}
_SHOWN = 500  # of each part


def shown(desk: Desk, request: Request) -> Response:
    tracks = desk.shelf.tracks()
    chosen = [desk.shelf.track(request.query_params.get(name, "")) for name in ("a", "b")]
    one, other = chosen
    parts = None
    if one is not None and other is not None:
        causes = desk.shelf.causes
        parts = compared(causes.of_place(one.place.key), causes.of_place(other.place.key))
    return desk.page("compare.html", tracks=tracks, one=one, other=other, parts=parts, most=_SHOWN)


def compared(before: Mapping[str, Row], after: Mapping[str, Row]) -> dict[str, list[Row]]:
    """Findings by what has become of them, the most harmful first."""
    both = [(before[key], after[key]) for key in after.keys() & before.keys()]
    changed = [{**new, "changes": _changes(old, new), "before": old} for old, new in both]
    return {
        "new": _ordered([after[key] for key in after.keys() - before.keys()]),
        "gone": _ordered([before[key] for key in before.keys() - after.keys()]),
        "changed": _ordered([row for row in changed if row["changes"]]),
        "same": _ordered([row for row in changed if not row["changes"]]),
    }


def _changes(old: Row, new: Row) -> list[str]:
    return [
        f"{name}: {old[key] or 'undecided'} → {new[key] or 'undecided'}"
        for key, name in _TOLD.items()
        if old[key] != new[key]
    ]


def _ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["harm"], -row["count"], row["fingerprint"]))
