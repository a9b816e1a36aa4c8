"""What commands have seen, on disk: one SQLite file in the folder that `--out` names.

Every command tells its events here; `report` and whoever follows a run read them, also while it
goes on. A campaign has tables of its own, and writes every generation in one transaction: killed,
it loses at most the generation it was in; nothing is counted twice.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from outvote.core.errors import UsageError
from outvote.core.events import (
    Event,
    FindingMet,
    Finished,
    Started,
    event_data,
    event_of,
    kind_of,
)
from outvote.core.files import write_atomically
from outvote.store import facts
from outvote.store.facts import Fact
from outvote.store.rows import Birth, Reached, Turn

T = TypeVar("T")
FILE = "outvote.db"
SCHEMA = 2
_CACHE = 512  # KiB of pages in memory: who writes a campaign reads little of it
_TABLES = """
CREATE TABLE events (
    number INTEGER PRIMARY KEY, run INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL,
    data TEXT NOT NULL);
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE mutants (
    number INTEGER PRIMARY KEY, parent INTEGER, root INTEGER NOT NULL, rule TEXT, seed INTEGER,
    outcome TEXT NOT NULL, acc REAL, joined INTEGER NOT NULL, layers INTEGER NOT NULL,
    seconds REAL NOT NULL, at REAL NOT NULL, message TEXT NOT NULL, new TEXT NOT NULL,
    network TEXT NOT NULL, inconsistent INTEGER NOT NULL);
CREATE TABLE findings (
    fingerprint TEXT PRIMARY KEY, count INTEGER NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, first_at REAL NOT NULL, last_at REAL NOT NULL, data TEXT NOT NULL);
CREATE TABLE samples (
    mutant INTEGER NOT NULL, target TEXT NOT NULL, seconds REAL NOT NULL, bytes INTEGER NOT NULL,
    restarts INTEGER NOT NULL);
"""
# A store of an earlier version gets these when it is opened.
_TURNS = """
CREATE TABLE IF NOT EXISTS turns (
    turn INTEGER PRIMARY KEY, what TEXT NOT NULL, number INTEGER NOT NULL, parent INTEGER NOT NULL,
    rule TEXT NOT NULL, seed INTEGER NOT NULL, strategy TEXT NOT NULL,
    told TEXT NOT NULL);
"""
_LINES = """
CREATE TABLE IF NOT EXISTS lines (
    number INTEGER NOT NULL, target TEXT NOT NULL, at REAL NOT NULL, count INTEGER NOT NULL,
    files TEXT NOT NULL);
"""
_ALIKE = """
CREATE TABLE IF NOT EXISTS alike (
    waiting INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (waiting, number)) WITHOUT ROWID;
"""
_LATER = f"{_TURNS}{_LINES}{_ALIKE}"


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
    network: str = ""  # identity of the network with its weights; empty: it was not run as one
    inconsistent: bool = False  # it shows a finding, be it a known one


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


@dataclass(frozen=True)
class Told:
    """An event, when it happened (seconds since 1970), and in which run of a command."""

    run: int
    at: float
    event: Event


def _make(path: str) -> None:
    """A store in which nothing has happened."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(f"PRAGMA journal_mode=WAL;BEGIN;{_TABLES}{_LATER}COMMIT;")
        db.execute("INSERT INTO facts VALUES (?, ?)", (facts.SCHEMA.name, json.dumps(SCHEMA)))


def read_fact(db: sqlite3.Connection, fact: Fact[T]) -> T:
    """What a store says of it, or what holds before it is noted."""
    row = db.execute("SELECT value FROM facts WHERE key = ?", (fact.name,)).fetchone()
    value: T = copy(fact.default) if row is None else json.loads(row[0])
    return value


class Store:
    """The file of one folder: the runs of commands, and a campaign if there is one."""

    def __init__(self, folder: Path, *, create: bool) -> None:
        path = self._path = folder / FILE
        if not create and not path.exists():
            raise UsageError(
                f"{folder} holds no campaign and no result of another command ({FILE} is missing)"
            )
        with self._writable():
            if not path.exists():
                # Whoever finds it finds it whole: others look on while a command begins.
                write_atomically(path, lambda half: _make(half.name))
            # Targets tell from threads of their own that they have finished.
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        # A statement that is prepared already must not be run by two threads at a time.
        self._lock = threading.RLock()
        self.run = 0  # of a command, once one has begun
        try:
            with self._writable():
                self._prepare()
        except sqlite3.DatabaseError as error:
            self.close()
            raise UsageError(f"{path} is not a readable store of outvote: {error}") from error
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute(f"PRAGMA cache_size=-{_CACHE}")
        if self.fact(facts.SCHEMA) != SCHEMA:
            raise UsageError(
                f"{self._path} was written by another version of outvote (schema "
                f"{self.fact(facts.SCHEMA)}, expected {SCHEMA}); choose another folder"
            )
        self._db.executescript(_LATER)

    def begin(self, started: Started) -> None:
        """A new run of a command: what is told from now on is of this one."""
        self.run = self.last_run() + 1
        self.tell(started)

    def tell(self, event: Event) -> None:
        """Keep an event. Of all runs only the last one that has finished keeps its result."""
        data = json.dumps(event_data(event), allow_nan=False)
        row = (self.run, time.time(), kind_of(event), data)
        with self._lock, self._writable():
            self._db.execute("INSERT INTO events (run, at, kind, data) VALUES (?, ?, ?, ?)", row)
            if isinstance(event, Finished):
                self._db.execute(
                    "UPDATE events SET data = json_set(data, '$.result', NULL) "
                    "WHERE kind = ? AND run < ?",
                    (kind_of(event), self.run),
                )

    def _write(self, statement: str, values: Sequence[Any] = ()) -> None:
        with self._lock, self._writable():
            self._db.execute(statement, values)

    @contextmanager
    def _writable(self) -> Iterator[None]:
        """A disk that is full or read-only is an error for the user."""
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:
            raise UsageError(
                f"{self._path} cannot be written ({error}); free some space, or choose another "
                "folder with --out"
            ) from error

    def last_run(self) -> int:
        """The number of the run of a command that was begun last; 0: there is none."""
        (last,) = self._db.execute("SELECT coalesce(max(run), 0) FROM events").fetchone()
        return int(last)

    def events(self, run: int | None = None, skip: int = 0) -> list[Told]:
        """What has happened so far, in all runs or in one, without the first few."""
        found = self._db.execute(
            "SELECT run, at, kind, data FROM events "
            "WHERE :run IS NULL OR run = :run ORDER BY number LIMIT -1 OFFSET :skip",
            {"run": run, "skip": skip},
        ).fetchall()
        return [Told(row[0], row[1], self._event(row[2], row[3])) for row in found]

    def _event(self, kind: str, data: str) -> Event:
        try:
            return event_of(kind, json.loads(data))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"{self._path} holds an event {kind!r} that cannot be read: it was changed by "
                "hand, or written by another version; run the command again in another folder"
            ) from error

    @property
    def holds_campaign(self) -> bool:
        return self.fact(facts.JOB) is not None

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        self._write("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._write("COMMIT")

    def note(self, fact: Fact[T], value: T) -> None:
        row = (fact.name, json.dumps(value))
        self._write("INSERT OR REPLACE INTO facts VALUES (?, ?)", row)

    def fact(self, fact: Fact[T]) -> T:
        with self._lock:
            return read_fact(self._db, fact)

    def add(self, row: Row) -> None:
        values = tuple(vars(row).values())
        self._write(f"INSERT INTO mutants VALUES ({','.join('?' * len(values))})", values)  # noqa: S608

    def shows_finding(self, number: int) -> None:
        """Of a mutant that is stored, and was looked into later."""
        self._write("UPDATE mutants SET inconsistent = 1 WHERE number = ?", (number,))

    def found(self, fingerprint: str, number: int, at: float, data: Mapping[str, Any]) -> None:
        """A new finding, or a known one that was met again."""
        self._write(
            "INSERT OR IGNORE INTO findings VALUES (?, 1, ?, ?, ?, ?, ?)",
            (fingerprint, number, number, at, at, json.dumps(data)),
        )
        told = {key: data[key] for key in ("kind", "triage", "title", "accused")}
        self.tell(FindingMet(fingerprint, **told))

    def retold(self, fingerprint: str, data: Mapping[str, Any]) -> None:
        """A stored finding, of which more is known now."""
        self._write(
            "UPDATE findings SET data = ? WHERE fingerprint = ?", (json.dumps(data), fingerprint)
        )

    def again(self, fingerprint: str, number: int, at: float) -> None:
        self._write(
            "UPDATE findings SET count = count + 1, last = ?, last_at = ? WHERE fingerprint = ?",
            (number, at, fingerprint),
        )

    def met(self, fingerprint: str, at: float) -> None:
        """A known finding, seen once more in a case that is not stored itself."""
        self._write(
            "UPDATE findings SET count = count + 1, last_at = ? WHERE fingerprint = ?",
            (at, fingerprint),
        )

    def sample(self, sample: Sample) -> None:
        self._write("INSERT INTO samples VALUES (?, ?, ?, ?, ?)", tuple(vars(sample).values()))

    def reach(self, new: Reached) -> None:
        """Lines that a mutant was the first of the campaign to reach in a target."""
        values = (new.number, new.target, new.at, new.count, json.dumps(new.files))
        self._write("INSERT INTO lines VALUES (?, ?, ?, ?, ?)", values)

    def reached(self) -> list[Reached]:
        """All lines that were reached, by who reached them first, in that order."""
        found = self._db.execute("SELECT number, target, at, files FROM lines ORDER BY rowid")
        return [
            Reached(number, target, at, json.loads(files)) for number, target, at, files in found
        ]

    def rows(self, *, seeds_alone: bool = False) -> list[Row]:
        query = "SELECT * FROM mutants WHERE rule IS NULL OR NOT ? ORDER BY number"
        found = self._db.execute(query, (seeds_alone,)).fetchall()
        return [
            replace(Row(*row), joined=bool(row[7]), inconsistent=bool(row[14])) for row in found
        ]

    def numbers(self) -> list[int]:
        """Of all seeds and mutants, in order."""
        found = self._db.execute("SELECT number FROM mutants ORDER BY number")
        return [number for (number,) in found]

    def tried(self) -> tuple[int, int]:
        """How many mutants are stored, and how many of them were a test of any target."""
        query = "SELECT count(*), total(outcome <> 'invalid') FROM mutants WHERE rule NOT NULL"
        tested, valid = self._db.execute(query).fetchone()
        return tested, int(valid)

    def birth(self, number: int) -> Birth | None:
        """How a mutant came to be; None where it is a seed, or not stored."""
        query = "SELECT number, parent, rule, seed FROM mutants WHERE number = ? AND rule NOT NULL"
        found = self._db.execute(query, (number,)).fetchone()
        return None if found is None else Birth(*found)

    def root_of(self, number: int) -> int:
        """The seed that a stored mutant descends from."""
        query = "SELECT root FROM mutants WHERE number = ?"
        (root,) = self._db.execute(query, (number,)).fetchone()
        return int(root)

    def alike(self, waiting: int, number: int) -> None:
        """An odd mutant that looks like one which waits."""
        self._write("INSERT OR REPLACE INTO alike VALUES (?, ?)", (waiting, number))

    def take_alike(self, waiting: int) -> list[int]:
        """What looks like one that waited; it waits no more."""
        query = "SELECT number FROM alike WHERE waiting = ? ORDER BY number"
        found = self._db.execute(query, (waiting,)).fetchall()
        self._write("DELETE FROM alike WHERE waiting = ?", (waiting,))
        return [number for (number,) in found]

    def record(self, turns: Iterable[Turn]) -> None:
        """What the strategy was asked and told since the last time, in its order."""
        for turn in turns:
            values = (turn.what, *vars(turn.birth).values(), turn.by, json.dumps(turn.told))
            self._write("INSERT INTO turns VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", values)

    def turns(self, after: int = 0) -> list[Turn]:
        """All turns of the strategy, or those later than one, to be gone through again."""
        return self._turns("SELECT * FROM turns WHERE turn > ? ORDER BY turn", (after,))

    def last_turn(self) -> int:
        (last,) = self._db.execute("SELECT coalesce(max(turn), 0) FROM turns").fetchone()
        return int(last)

    def unanswered(self) -> list[Turn]:
        """What the strategy asked for and was not told of."""
        return self._turns(
            "SELECT * FROM turns WHERE turn IN (SELECT max(turn) FROM turns GROUP BY number) "
            "AND what = 'asked' ORDER BY turn"
        )

    def _turns(self, query: str, values: Sequence[Any] = ()) -> list[Turn]:
        found = self._db.execute(query, values).fetchall()
        return [Turn(row[1], Birth(*row[2:6]), row[6], tuple(json.loads(row[7]))) for row in found]

    def findings(self) -> list[Seen]:
        found = self._db.execute("SELECT * FROM findings ORDER BY first, fingerprint").fetchall()
        return [replace(Seen(*row), data=json.loads(row[6])) for row in found]

    def samples(self) -> Sequence[Sample]:
        found = self._db.execute("SELECT * FROM samples ORDER BY rowid").fetchall()
        return [Sample(*row) for row in found]
