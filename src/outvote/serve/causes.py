"""All findings of all folders in one table: filtered, sorted and paged by SQL.

A cause is a fingerprint; met in several folders, it is one row of the page. Of the table as much is
in memory as a cache holds, however many findings come; the rest is in a file without a name.
"""

# ruff: noqa: S608 - only columns and conditions of our own stand in these texts

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from outvote.core.errors import UsageError
from outvote.core.harm import harm
from outvote.store.queries import ShortFinding

# `causes` has a row for each folder that a cause was met in, `merged` one for each cause.
_COLUMNS = """
    place TEXT, fingerprint TEXT, triage TEXT, kind TEXT, accused TEXT, layer TEXT,
    layer_kind TEXT, title TEXT, distance REAL, count INTEGER, first REAL, last REAL, rule TEXT,
    harm INTEGER, targets TEXT, words TEXT, places INTEGER"""
_TABLES = f"""
CREATE TABLE causes ({_COLUMNS}, PRIMARY KEY (place, fingerprint));
CREATE TABLE merged ({_COLUMNS}, PRIMARY KEY (fingerprint));
CREATE INDEX causes_by_fingerprint ON causes (fingerprint);
CREATE INDEX causes_by_harm ON causes (place, harm, count DESC, fingerprint);
CREATE INDEX causes_by_time ON causes (place, first DESC, fingerprint);
CREATE INDEX merged_by_harm ON merged (harm, count DESC, fingerprint);
CREATE INDEX merged_by_time ON merged (first DESC, fingerprint);
CREATE TABLE known (fingerprint TEXT PRIMARY KEY) WITHOUT ROWID;
"""
# What was met again is changed where it stands: a row that is replaced moves to the end of its
# table, and leaves pages behind that are half empty.
_CHANGE = ", ".join(
    f"{name} = excluded.{name}"
    for name in (column.split()[0] for column in _COLUMNS.split(","))
    if name not in ("place", "fingerprint")
)
# Of several folders the one that met it first tells it.
_MERGE = f"""
INSERT INTO merged
SELECT place, fingerprint, triage, kind, accused, layer, layer_kind, title, distance, sum(count),
    min(first), last, rule, harm, targets, words, count(*)
FROM causes WHERE fingerprint IN (SELECT value FROM json_each(?)) GROUP BY fingerprint
ON CONFLICT DO UPDATE SET place = excluded.place, {_CHANGE}
"""
_SHOWN = (
    "fingerprint, place, triage, kind, accused, layer, layer_kind, title, distance, count, first, "
    "harm, targets, places"
)
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
_CACHE = 4096  # KiB
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
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.execute(f"PRAGMA cache_size = -{_CACHE}")
        self._db.row_factory = sqlite3.Row
        self._db.executescript(_TABLES)
        self._lock = threading.Lock()
        self._reasons: dict[str, str] = {}
        self._choices: dict[str, list[str]] = {}

    def put(self, place: str, created: float, findings: Iterable[ShortFinding]) -> None:
        rows = [_row(place, created, finding) for finding in findings]
        marks = ", ".join("?" * len(rows[0])) if rows else ""
        with self._changed():
            self._db.executemany(
                f"INSERT INTO causes VALUES ({marks}) ON CONFLICT DO UPDATE SET {_CHANGE}", rows
            )
            self._db.execute(_MERGE, (json.dumps([row[1] for row in rows]),))

    def forget(self, place: str) -> None:
        mine = "(SELECT fingerprint FROM causes WHERE place = ?)"
        with self._changed():
            found = self._db.execute(f"SELECT * FROM {mine}", (place,)).fetchall()
            self._db.execute(f"DELETE FROM merged WHERE fingerprint IN {mine}", (place,))
            self._db.execute("DELETE FROM causes WHERE place = ?", (place,))
            self._db.execute(_MERGE, (json.dumps([row[0] for row in found]),))

    @contextmanager
    def _changed(self) -> Iterator[None]:
        with self._lock:
            self._choices = {}
            self._db.execute("BEGIN")
            try:
                yield
                self._db.execute("COMMIT")
            except sqlite3.OperationalError as error:
                raise UsageError(
                    f"findings cannot be kept ({error}); free some space where temporary files are"
                ) from error
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def know(self, reasons: Mapping[str, str]) -> None:
        """Which findings are known, and why."""
        if reasons == self._reasons:
            return
        with self._changed():
            self._reasons = dict(reasons)
            self._db.execute("DELETE FROM known")
            self._db.executemany("INSERT INTO known VALUES (?)", [(key,) for key in reasons])

    def find(self, asked: Filter) -> CausesPage:
        """One page of what is asked for, and how much there is."""
        where, values = _where(asked)
        table = "causes" if asked.place else "merged"
        page = f"SELECT {_SHOWN} FROM {table} WHERE {where} ORDER BY {SORTS[asked.sort]}"
        before = asked.page * PAGE
        with self._lock:
            rows = self._db.execute(f"{page} LIMIT ? OFFSET ?", (*values, PAGE, before)).fetchall()
            total = before + len(rows)
            if len(rows) in (0, PAGE):
                count = f"SELECT count(*) FROM {table} WHERE {where}"
                (total,) = self._db.execute(count, values).fetchone()
        told = [dict(row) | {"known": self._reasons.get(row["fingerprint"])} for row in rows]
        return CausesPage(told, total)

    def choices(self) -> dict[str, list[str]]:
        """The values that there are to choose from, the most frequent first."""
        with self._lock:
            if not self._choices:
                self._choices = {name: self._frequent(name) for name in _CHOICES}
            return self._choices

    def _frequent(self, name: str) -> list[str]:
        there = f"SELECT {name} FROM merged WHERE {name} IS NOT NULL"
        query = f"{there} GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 200"
        return [row[0] for row in self._db.execute(query)]

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
        *(harm(found.triage, found.kind), targets, " ".join(told).casefold(), 1),
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
    if asked.since:
        parts.append("first >= ?")
        values.append(asked.since)
    if asked.status:
        without = "NOT " * (asked.status != "known")
        parts.append(f"fingerprint {without}IN (SELECT fingerprint FROM known)")
    return " AND ".join(parts), values
