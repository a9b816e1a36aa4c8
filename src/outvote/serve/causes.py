"""All findings of all folders in one table, in memory: filtered, sorted and paged by SQL.

A cause is a fingerprint; met in several folders, it is one row of the page.
"""

# ruff: noqa: S608 - only columns and conditions of our own stand in these texts

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from outvote.core.harm import harm
from outvote.store.queries import ShortFinding

_TABLES = """
CREATE TABLE causes (
    place TEXT, fingerprint TEXT, triage TEXT, kind TEXT, accused TEXT, layer TEXT,
    layer_kind TEXT, title TEXT, distance REAL, count INTEGER, first REAL, last REAL, rule TEXT,
    harm INTEGER, targets TEXT, words TEXT, PRIMARY KEY (place, fingerprint)) WITHOUT ROWID;
CREATE INDEX by_fingerprint ON causes (fingerprint, first);
CREATE TABLE known (fingerprint TEXT PRIMARY KEY, reason TEXT) WITHOUT ROWID;
"""
SORTS: Mapping[str, str] = {
    "harm": "harm, count DESC, fingerprint",
    "newest": "first DESC, fingerprint",
    "times": "count DESC, fingerprint",
    "target": "accused IS NULL, accused, harm, fingerprint",
    "layer": "layer_kind IS NULL, layer_kind, harm, fingerprint",
    "verdict": "triage, harm, fingerprint",
    "kind": "kind, harm, fingerprint",
    "distance": "distance DESC, fingerprint",
    "what": "title, fingerprint",
}
PAGE = 100
_CHOICES = ("triage", "kind", "accused", "layer_kind")


@dataclass(frozen=True)
class Filter:
    """What a reader wants to see."""

    text: str = ""  # words, all of which must occur
    triage: str = ""
    kind: str = ""
    accused: str = ""
    layer_kind: str = ""
    place: str = ""
    status: str = ""  # new, known
    since: float = 0.0  # first met after it, seconds since 1970
    sort: str = "harm"
    page: int = 0

    @staticmethod
    def of(given: Mapping[str, str]) -> Filter:
        """What an address asks for; what makes no sense is left out."""
        kept: dict[str, Any] = {f.name: given[f.name] for f in fields(Filter) if f.name in given}
        kept["sort"] = kept.get("sort") if kept.get("sort") in SORTS else "harm"
        kept["page"] = int(kept["page"]) if kept.get("page", "").isdigit() else 0
        try:
            kept["since"] = float(kept.get("since") or 0.0)
        except ValueError:
            kept["since"] = 0.0
        return Filter(**kept)


@dataclass(frozen=True)
class CausesPage:
    """One page of causes, and how many there are on all."""

    rows: list[dict[str, Any]]
    total: int


class Causes:
    """The table. One writer, many readers."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._db.row_factory = sqlite3.Row
        self._db.executescript(_TABLES)
        self._lock = threading.Lock()

    def put(self, place: str, created: float, findings: Iterable[ShortFinding]) -> None:
        rows = [_row(place, created, finding) for finding in findings]
        marks = ", ".join("?" * 16)
        with self._lock:
            self._db.execute("BEGIN")
            self._db.executemany(f"INSERT OR REPLACE INTO causes VALUES ({marks})", rows)
            self._db.execute("COMMIT")

    def forget(self, place: str) -> None:
        with self._lock:
            self._db.execute("DELETE FROM causes WHERE place = ?", (place,))

    def know(self, reasons: Mapping[str, str]) -> None:
        """Which findings are known, and why."""
        with self._lock:
            self._db.execute("BEGIN")
            self._db.execute("DELETE FROM known")
            self._db.executemany("INSERT INTO known VALUES (?, ?)", reasons.items())
            self._db.execute("COMMIT")

    def find(self, asked: Filter) -> CausesPage:
        """One page of what is asked for, and how much there is."""
        where, values = _where(asked)
        grouped = (
            "SELECT fingerprint, min(first) AS first, place, sum(count) AS count, "
            "triage, kind, accused, layer, layer_kind, title, distance, harm, targets, "
            "count(*) AS places, k.reason AS known FROM causes LEFT JOIN known k "
            f"USING (fingerprint) WHERE {where} GROUP BY fingerprint HAVING min(first) >= ?"
        )
        page = f"{grouped} ORDER BY {SORTS[asked.sort]} LIMIT ? OFFSET ?"
        values = [*values, asked.since]
        with self._lock:
            rows = self._db.execute(page, (*values, PAGE, asked.page * PAGE)).fetchall()
            count = f"SELECT count(*) FROM ({grouped})"
            (total,) = self._db.execute(count, values).fetchone()
        return CausesPage([dict(row) for row in rows], total)

    def choices(self) -> dict[str, list[str]]:
        """The values that there are to choose from, the most frequent first."""
        with self._lock:
            return {
                name: [
                    row[0]
                    for row in self._db.execute(
                        f"SELECT {name} FROM causes WHERE {name} IS NOT NULL "
                        "GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 200"
                    )
                ]
                for name in _CHOICES
            }

    def of_place(self, place: str) -> dict[str, dict[str, Any]]:
        """The findings of one folder by fingerprint."""
        with self._lock:
            rows = self._db.execute("SELECT * FROM causes WHERE place = ?", (place,)).fetchall()
        return {row["fingerprint"]: dict(row) for row in rows}

    def totals(self) -> dict[str, int]:
        """How many findings each folder has."""
        with self._lock:
            rows = self._db.execute("SELECT place, count(*) FROM causes GROUP BY place").fetchall()
        return {row[0]: row[1] for row in rows}

    def places_of(self, fingerprint: str) -> list[str]:
        """The folders that hold a finding, where it was met last first."""
        query = "SELECT place FROM causes WHERE fingerprint = ? ORDER BY last DESC"
        with self._lock:
            return [row[0] for row in self._db.execute(query, (fingerprint,))]

    def counts(self, column: str, place: str) -> list[tuple[str, int]]:
        """How many findings of a folder have each value of a column, most first."""
        assert column in ("rule", "triage", "kind", "accused")
        query = (
            f"SELECT coalesce({column}, ''), count(*) FROM causes WHERE place = ? "
            "GROUP BY 1 ORDER BY 2 DESC, 1"
        )
        with self._lock:
            return [tuple(row) for row in self._db.execute(query, (place,))]

    def seconds(self, place: str, created: float) -> list[float]:
        """When each finding of a campaign was met first, in its own seconds, in order."""
        query = "SELECT first - ? FROM causes WHERE place = ? ORDER BY first"
        with self._lock:
            return [row[0] for row in self._db.execute(query, (created, place))]


def _row(place: str, created: float, found: ShortFinding) -> tuple[Any, ...]:
    targets = ", ".join(found.targets)
    shown = (found.title, found.layer, found.layer_kind, found.accused, targets, found.rule)
    told = (found.fingerprint, found.kind, found.triage, *(text for text in shown if text))
    return (
        *(place, found.fingerprint, found.triage, found.kind, found.accused, found.layer),
        *(found.layer_kind, found.title, found.distance, found.count),
        *(created + found.first_at, created + found.last_at, found.rule),
        *(harm(found.triage, found.kind), targets, " ".join(told).casefold()),
    )


def _where(asked: Filter) -> tuple[str, list[Any]]:
    parts, values = ["1"], []
    for name in (*_CHOICES, "place"):
        if value := getattr(asked, name):
            parts.append(f"{name} = ?")
            values.append(value)
    for word in asked.text.casefold().split()[:12]:
        parts.append("instr(words, ?)")
        values.append(word)
    if asked.status:
        parts.append(f"k.reason IS {'NOT ' * (asked.status == 'known')}NULL")
    return " AND ".join(parts), values
