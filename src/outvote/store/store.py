"""A campaign on disk: one SQLite file, one writer, every generation in one transaction.

A campaign that is killed loses at most the generation it was in; nothing is counted twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from outvote.core.errors import UsageError
from outvote.store.rows import Birth

FILE = "campaign.sqlite"
_SCHEMA = 1
_TABLES = """
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE mutants (
    number INTEGER PRIMARY KEY, parent INTEGER, root INTEGER NOT NULL, rule TEXT, seed INTEGER,
    outcome TEXT NOT NULL, acc REAL, joined INTEGER NOT NULL, layers INTEGER NOT NULL,
    seconds REAL NOT NULL, at REAL NOT NULL, message TEXT NOT NULL, new TEXT NOT NULL);
CREATE TABLE findings (
    fingerprint TEXT PRIMARY KEY, count INTEGER NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, first_at REAL NOT NULL, last_at REAL NOT NULL, data TEXT NOT NULL);
CREATE TABLE samples (
    mutant INTEGER NOT NULL, target TEXT NOT NULL, seconds REAL NOT NULL, bytes INTEGER NOT NULL,
    restarts INTEGER NOT NULL);
"""


@dataclass(frozen=True)
class Row:
    """One model that was run: a seed (no rule) or a mutant."""

    number: int
    parent: int | None
    root: int
    rule: str | None
    seed: int | None
    outcome: str  # ok, some (targets failed), invalid (no target could run it)
    acc: float | None
    joined: bool
    layers: int
    seconds: float  # spent inside targets
    at: float  # seconds since the campaign began
    message: str = ""  # what the first target that failed said
    new: str = ""  # kinds of the layers that its parent does not have


@dataclass(frozen=True)
class Seen:
    """A finding and how often it was met."""

    fingerprint: str
    count: int
    first: int
    last: int
    first_at: float
    last_at: float
    data: dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """What one target took for the same model at some time of the campaign."""

    mutant: int
    target: str
    seconds: float
    bytes: int
    restarts: int


class Store:
    """The file of one campaign."""

    def __init__(self, folder: Path, *, create: bool) -> None:
        path = folder / FILE
        if create and path.exists():
            raise UsageError(
                f"{folder} holds a campaign already; go on with --resume, "
                "or choose another folder with --out"
            )
        if not create and not path.exists():
            raise UsageError(f"{folder} holds no campaign ({FILE} is missing)")
        self._db = sqlite3.connect(path, isolation_level=None)
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            if create:
                self._db.executescript(f"BEGIN;{_TABLES}COMMIT;")
                self.note("schema", _SCHEMA)
            elif self.fact("schema") != _SCHEMA:
                raise UsageError(
                    f"{path} was written by another version of outvote (schema "
                    f"{self.fact('schema')}, expected {_SCHEMA}); start a new campaign"
                )
        except sqlite3.DatabaseError as error:
            raise UsageError(f"{path} is not a readable campaign: {error}") from error

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def note(self, key: str, value: Any) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (key, json.dumps(value)))

    def fact(self, key: str, default: Any = None) -> Any:
        row = self._db.execute("SELECT value FROM facts WHERE key = ?", (key,)).fetchone()
        return default if row is None else json.loads(row[0])

    def add(self, row: Row) -> None:
        values = tuple(vars(row).values())
        self._db.execute(f"INSERT INTO mutants VALUES ({','.join('?' * len(values))})", values)  # noqa: S608

    def found(self, fingerprint: str, number: int, at: float, data: Mapping[str, Any]) -> None:
        """A new finding, or a known one that was met again."""
        self._db.execute(
            "INSERT OR IGNORE INTO findings VALUES (?, 1, ?, ?, ?, ?, ?)",
            (fingerprint, number, number, at, at, json.dumps(data)),
        )

    def retold(self, fingerprint: str, data: Mapping[str, Any]) -> None:
        """A stored finding, of which more is known now."""
        self._db.execute(
            "UPDATE findings SET data = ? WHERE fingerprint = ?", (json.dumps(data), fingerprint)
        )

    def again(self, fingerprint: str, number: int, at: float) -> None:
        self._db.execute(
            "UPDATE findings SET count = count + 1, last = ?, last_at = ? WHERE fingerprint = ?",
            (number, at, fingerprint),
        )

    def sample(self, sample: Sample) -> None:
        self._db.execute("INSERT INTO samples VALUES (?, ?, ?, ?, ?)", tuple(vars(sample).values()))

    def rows(self) -> list[Row]:
        found = self._db.execute("SELECT * FROM mutants ORDER BY number").fetchall()
        return [replace(Row(*row), joined=bool(row[7])) for row in found]

    def births(self) -> dict[int, Birth]:
        """How every mutant that may breed came to be."""
        found = self._db.execute(
            "SELECT number, parent, rule, seed FROM mutants WHERE rule IS NOT NULL"
        ).fetchall()
        return {row[0]: Birth(*row) for row in found}

    def findings(self) -> list[Seen]:
        found = self._db.execute("SELECT * FROM findings ORDER BY first, fingerprint").fetchall()
        return [replace(Seen(*row), data=json.loads(row[6])) for row in found]

    def samples(self) -> Sequence[Sample]:
        found = self._db.execute("SELECT * FROM samples ORDER BY rowid").fetchall()
        return [Sample(*row) for row in found]
