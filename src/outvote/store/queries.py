"""Questions to a store, page by page: read and never written, also while a command writes it.

What grows with a campaign is asked for since the last time, by the numbers that rows have.
"""

# ruff: noqa: S608 - only columns and conditions of our own stand in these texts

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from outvote.core.errors import UsageError
from outvote.core.events import Event, event_of
from outvote.store import facts
from outvote.store.facts import Fact
from outvote.store.store import FILE, SCHEMA, read_fact

T = TypeVar("T")
_SHORT = ("kind", "triage", "title", "accused", "layer", "layer_kind", "distance", "targets")
_COLUMNS = ", ".join(f"json_extract(f.data, '$.{key}')" for key in _SHORT)


@dataclass(frozen=True)
class Numbered:
    """An event with its number in the store, by which one asks for later ones."""

    number: int
    run: int
    at: float
    event: Event


@dataclass(frozen=True)
class ShortFinding:
    """As much of a finding as a table shows."""

    row: int
    fingerprint: str
    count: int
    first_at: float
    last_at: float
    rule: str | None  # that bred the mutant which showed it first; None: a seed
    kind: str
    triage: str
    title: str
    accused: str | None
    layer: str | None
    layer_kind: str | None
    distance: float | None
    targets: tuple[str, ...]


class Queries:
    """A store that is open for questions."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def fact(self, fact: Fact[T]) -> T:
        return read_fact(self._db, fact)

    def inside(self, fact: Fact[Any], key: str) -> dict[str, Any]:
        """One part of a fact that is large as a whole."""
        row = self._db.execute(
            "SELECT json_extract(value, '$.' || ?) FROM facts WHERE key = ?", (key, fact.name)
        ).fetchone()
        return json.loads(row[0]) if row is not None and row[0] is not None else {}

    def events(self, after: int, *kinds: str) -> Iterator[Numbered]:
        """Events of these kinds since the one of that number, without their results."""
        where = f"number > ? AND kind IN ({_marks(kinds)}) ORDER BY number"
        return self._events(where, (after, *kinds))

    def of_last_run(self, *kinds: str) -> list[Numbered]:
        """Events of the run that was begun last."""
        where = (
            "run = (SELECT max(run) FROM events) "
            f"AND kind IN ({_marks(kinds)}) ORDER BY number LIMIT 1000"
        )
        return list(self._events(where, kinds))

    def _events(self, where: str, values: tuple[Any, ...]) -> Iterator[Numbered]:
        # A result may take megabytes, and is asked for by itself.
        query = (
            "SELECT number, run, at, kind, CASE kind WHEN 'finished' "
            f"THEN json_remove(data, '$.result') ELSE data END FROM events WHERE {where}"
        )
        for number, run, at, kind, data in self._db.execute(query, values):
            yield Numbered(number, run, at, event_of(kind, json.loads(data)))

    def result(self) -> dict[str, Any] | None:
        """The result of the last run that has finished with one."""
        row = self._db.execute(
            "SELECT json_extract(data, '$.result') FROM events WHERE kind = 'finished' "
            "AND json_extract(data, '$.result') IS NOT NULL ORDER BY number DESC LIMIT 1"
        ).fetchone()
        return None if row is None else json.loads(row[0])

    def findings(self, after: int = 0, since: float = -1.0) -> Iterator[ShortFinding]:
        """Findings with a later row than that, or met again since that second."""
        query = (
            "SELECT f.rowid, f.fingerprint, f.count, f.first_at, f.last_at, m.rule, "
            f"{_COLUMNS} FROM findings f LEFT JOIN mutants m ON m.number = f.first "
            "WHERE f.rowid > ? OR f.last_at > ? ORDER BY f.rowid"
        )
        rows = self._db.execute(query, (after, since))
        return (_short(*row) for row in rows)

    def finding(self, fingerprint: str) -> dict[str, Any] | None:
        """All of one finding, with its lineage."""
        row = self._db.execute(
            "SELECT data, count, first, first_at, last_at FROM findings WHERE fingerprint = ?",
            (fingerprint,),
        ).fetchone()
        if row is None:
            return None
        data, count, first, first_at, last_at = row
        return {
            **json.loads(data),
            "count": count,
            "first": first,
            "first_at": first_at,
            "last_at": last_at,
            "lineage": self.lineage(first),
        }

    def lineage(self, number: int) -> list[dict[str, Any]]:
        """From the seed to a mutant: each step with its rule and what it put in."""
        rows = self._db.execute(
            "WITH RECURSIVE line(number, parent, rule, new, acc, depth) AS ("
            "SELECT number, parent, rule, new, acc, 0 FROM mutants WHERE number = ? UNION ALL "
            "SELECT m.number, m.parent, m.rule, m.new, m.acc, depth + 1 "
            "FROM mutants m JOIN line ON m.number = line.parent) "
            "SELECT number, rule, new, acc FROM line ORDER BY depth DESC",
            (number,),
        )
        return [dict(zip(("mutant", "rule", "new", "acc"), row, strict=True)) for row in rows]

    def lines_over_time(self) -> dict[str, list[list[float]]]:
        """By target: at which second how many lines of its library had been reached.

        A store that an earlier version wrote, and none has opened since, knows of no lines.
        """
        found: dict[str, list[list[float]]] = {}
        if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'lines'").fetchone():
            return found
        query = (
            "SELECT target, at, sum(count) OVER (PARTITION BY target ORDER BY rowid) "
            "FROM lines ORDER BY rowid"
        )
        for target, at, total in self._db.execute(query):
            found.setdefault(target, []).append([at, total])
        return found

    def newest(self, count: int) -> list[dict[str, Any]]:
        """The mutants that were tested last, newest first."""
        rows = self._db.execute(
            "SELECT number, rule, new, outcome, seconds FROM mutants ORDER BY number DESC LIMIT ?",
            (count,),
        )
        keys = ("number", "rule", "new", "outcome", "seconds")
        return [dict(zip(keys, row, strict=True)) for row in rows]


def _short(*row: Any) -> ShortFinding:
    values = dict(zip((field.name for field in fields(ShortFinding)), row, strict=True))
    return ShortFinding(**{**values, "targets": tuple(json.loads(values["targets"]))})


def _marks(values: tuple[Any, ...]) -> str:
    return ", ".join("?" * len(values))


@contextmanager
def asked(folder: Path) -> Iterator[Queries]:
    """The store of a folder, for some questions."""
    path = folder / FILE
    try:
        db = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=2)
    except sqlite3.Error as error:
        raise UsageError(f"{path} cannot be opened: {error}") from error
    try:
        found = read_fact(db, facts.SCHEMA)
        if found != SCHEMA:
            raise UsageError(
                f"{path} was written by another version of outvote (schema {found}, "
                f"expected {SCHEMA})"
            )
        yield Queries(db)
    except sqlite3.Error as error:
        raise UsageError(f"{path} is not a readable store of outvote: {error}") from error
    finally:
        db.close()
