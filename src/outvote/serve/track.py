"""What is known of one folder so far, brought up to date by what its store tells anew."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psutil

from outvote.core.errors import UsageError
from outvote.core.events import Broken, Finished, MutantsTested, Started
from outvote.serve.places import RESULT, Place
from outvote.store import facts
from outvote.store.owner import is_elsewhere, process_of
from outvote.store.queries import Queries, ShortFinding, asked

_MOST_POINTS = 240  # of a line over time: beyond it every second one goes
_OPTIONAL = ("accused", "layer", "layer_kind", "distance")
_EARLY = "interrupted"  # the verdict on a command that was stopped
_MOST_BYTES = 1 << 28  # of a result.json without a store


@dataclass
class Track:
    """One folder: its last run, the line of its campaign, and how far its store has been read."""

    place: Place
    command: str = ""
    began: float = 0.0  # seconds since 1970
    ended: Finished | Broken | None = None
    created: float = 0.0  # of the campaign, seconds since 1970
    points: list[MutantsTested] = field(default_factory=list)
    latest: MutantsTested | None = None
    interrupted: bool = False
    paused: bool = False
    strategy: str = ""
    targets: tuple[str, ...] = ()
    trouble: str = ""  # why it cannot be read
    version: int = 0  # goes up with every change that a page shows
    _stamp: tuple[int, ...] = ()
    _event: int = 0
    _row: int = 0
    _since: float = -1.0
    _every: int = 1  # of so many events one is a point
    _seen: int = 0
    _owner: dict[str, Any] = field(default_factory=dict)

    def refresh(self) -> Iterator[ShortFinding]:
        """Read what is new; gives the findings that are new or were met again."""
        stamp = self.place.stamp()
        if stamp == self._stamp:
            return
        self._stamp, self.trouble = stamp, ""
        try:
            if self.place.has_store:
                with asked(self.place.path) as store:
                    yield from self._read(store)
            else:
                yield from self._findings_of(self._result_file())
        except UsageError as error:
            self.trouble = str(error)
            self._stamp = ()  # it may be about to be made: it is looked at again
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self.trouble = f"it was not written by outvote, or changed since: {error!r}"
        self.version += 1  # at the end: who asks for this version is shown what it holds

    def _read(self, store: Queries) -> Iterator[ShortFinding]:
        for told in store.events(self._event, "started", "finished", "broken", "mutants tested"):
            self._event = told.number
            if isinstance(told.event, Started):
                self.command, self.began, self.ended = told.event.command, told.at, None
            elif isinstance(told.event, MutantsTested):
                self._point(told.event)
            else:
                assert isinstance(told.event, Finished | Broken)
                self.ended = told.event
                self._row, self._since = 0, -1.0  # findings are told anew at the end
        self._owner = store.fact(facts.OWNER)
        if self.command == "fuzz" or store.fact(facts.JOB) is not None:
            job = store.fact(facts.JOB) or {}
            self.strategy, self.targets = job.get("strategy", ""), tuple(job.get("targets", ()))
            self.interrupted = store.fact(facts.INTERRUPTED)
            self.paused = store.fact(facts.PAUSED)
            self.created = self.created or _epoch(store.fact(facts.CREATED))
            for finding in store.findings(self._row, self._since):
                self._row = max(self._row, finding.row)
                self._since = max(self._since, finding.last_at)
                yield finding
        elif isinstance(self.ended, Finished):
            yield from self._findings_of(store.result())

    def _point(self, event: MutantsTested) -> None:
        self.latest = event
        self._seen += 1
        if self._seen % self._every == 0:
            self.points.append(event)
        if len(self.points) > _MOST_POINTS:
            self.points = self.points[1::2]
            self._every *= 2

    def _result_file(self) -> dict[str, Any]:
        found = result_in(self.place)
        self.command = str(found["command"])
        self.ended = Finished(found["verdict"], str(found["summary"]))
        return found

    def _findings_of(self, result: dict[str, Any] | None) -> Iterator[ShortFinding]:
        if result is None:
            return
        self.created = self.began or _epoch(result["created"])
        names = [target["name"] for target in result["targets"] if isinstance(target, dict)]
        self.targets = tuple(map(str, names))
        for place, finding in enumerate(result["findings"]):
            first = float(finding.get("first_at") or 0.0)
            yield ShortFinding(
                row=place,
                fingerprint=str(finding["fingerprint"]),
                count=int(finding.get("count") or 1),
                first_at=first,
                last_at=float(finding.get("last_at") or first),
                rule=None,
                kind=str(finding["kind"]),
                triage=str(finding["triage"]),
                title=str(finding["title"]),
                targets=tuple(map(str, finding["targets"])),
                **{key: finding.get(key) for key in _OPTIONAL},
            )

    @property
    def process(self) -> psutil.Process | None:
        """Who is at work there now."""
        return process_of(self._owner) if self.ended is None and self._owner else None

    @property
    def state(self) -> str:
        """running, paused, done, stopped, failed; gone: it ended without a word; or elsewhere."""
        if self.trouble:
            return "unreadable"
        if isinstance(self.ended, Finished):
            early = self.interrupted if self.command == "fuzz" else self.ended.verdict == _EARLY
            return "stopped" if early else "done"
        if isinstance(self.ended, Broken):
            return "failed" if self.ended.reason else "stopped"
        if self.process is None:
            return "elsewhere" if is_elsewhere(self._owner) else "gone"
        return "paused" if self.paused else "running"

    @property
    def has_report(self) -> bool:
        return not self.trouble and (self.command == "fuzz" or isinstance(self.ended, Finished))

    @property
    def summary(self) -> str:
        if self.trouble:
            return self.trouble
        if isinstance(self.ended, Finished):
            return self.ended.summary
        if isinstance(self.ended, Broken):
            return self.ended.reason
        return ""

    def rate(self) -> float:
        """Cases a minute, over the last points."""
        line = [p for p in (*self.points[-8:], self.latest) if p is not None]
        if len(line) < 2 or line[-1].seconds <= line[0].seconds:
            return 0.0
        return 60 * (line[-1].tested - line[0].tested) / (line[-1].seconds - line[0].seconds)

    def left(self) -> float | None:
        """Seconds until the budget is spent, if all goes on as it went."""
        now = self.latest
        if now is None or not 0 < now.share < 1:
            return None
        return now.seconds / now.share * (1 - now.share)


def result_in(place: Place) -> dict[str, Any]:
    """The result.json of a folder that has no store."""
    path = place.path / RESULT
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} is larger than {_MOST_BYTES:,} bytes; it is not read")
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    return found


def _epoch(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp() if moment else time.time()
