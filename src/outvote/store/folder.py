"""What the commands in a folder have come to, from its store alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outvote.core.errors import UsageError
from outvote.core.events import Broken, Finished, Started
from outvote.core.result import moment
from outvote.store import facts
from outvote.store.comparison import compared
from outvote.store.store import FILE, Store, Told
from outvote.store.summary import fuzz_result


@dataclass(frozen=True)
class LastRun:
    """How the last run was started, and its result, not held against its gate yet."""

    started: Started
    result: dict[str, Any]


def last_run(out: Path) -> LastRun:
    """The last run that has a result: one that has finished, or a campaign at any time."""
    with closing(Store(out, create=False)) as store:
        events = store.events()
        for run in sorted({told.run for told in events}, reverse=True):
            found = _result_of(store, out, [told for told in events if told.run == run])
            if found is not None:
                return found
        raise UsageError(f"no command in {out} has come to a result: {_why(events)}")


def _result_of(store: Store, out: Path, events: Sequence[Told]) -> LastRun | None:
    started = next((told.event for told in events if isinstance(told.event, Started)), None)
    finished = next((told.event for told in events if isinstance(told.event, Finished)), None)
    if started is None:
        return None
    if started.command == "fuzz":
        return LastRun(started, campaign_result(store, out)) if _has_run(store) else None
    if finished is None or finished.result is None:
        return None
    return LastRun(started, dict(finished.result))


def holds_campaign(out: Path) -> bool:
    if not (out / FILE).exists():
        return False
    with closing(Store(out, create=False)) as store:
        return store.holds_campaign


def takes_campaign(store: Store) -> bool:
    """Whether a new one may begin: there is none, or it failed before its seeds had run.

    One that was killed at its start, and has said nothing of its end, may be running still.
    """
    if not store.holds_campaign:
        return True
    events = store.events()
    return not _has_run(store) and bool(events) and isinstance(events[-1].event, Broken)


def stored_result(out: Path) -> dict[str, Any]:
    """What the campaign in a folder has come to."""
    with closing(Store(out, create=False)) as store:
        if not store.holds_campaign:
            raise UsageError(f"{out} holds no campaign; only campaigns are compared")
        if not _has_run(store):
            raise UsageError(f"the campaign in {out} was stopped before its seeds had run")
        return campaign_result(store, out)


def campaign_result(store: Store, out: Path) -> dict[str, Any]:
    """The result of a campaign, with those it was compared with by `--compare`."""
    result = fuzz_result(store)
    rivals = [out / name for name in store.fact(facts.RIVALS)]
    if rivals:
        others = {str(folder): stored_result(folder) for folder in rivals}
        result["comparison"] = compared({str(out): result, **others}, result["created"])
    return result


def comparison_of(folders: Sequence[Path]) -> dict[str, Any]:
    """Stored campaigns held against each other, strategy by strategy."""
    for folder in folders:
        if [other.resolve() for other in folders].count(folder.resolve()) > 1:
            raise UsageError(f"{folder} was named twice; a campaign is no repetition of itself")
    return compared({str(folder): stored_result(folder) for folder in folders}, moment())


def _has_run(store: Store) -> bool:
    return store.fact(facts.STATE) is not None


def _why(events: Sequence[Told]) -> str:
    broken = [told.event.reason for told in events if isinstance(told.event, Broken)]
    return (broken[-1] or "it was stopped") if broken else "it has not ended yet"
