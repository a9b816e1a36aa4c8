"""What happens while a command runs, as small facts: told by who does it, kept by the store.

`report` rebuilds results from them, and who wants to follow a run reads them while it goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Started:
    """A command has begun; `gate` is what its findings will be held against, if it has one."""

    command: str
    gate: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class TargetUp:
    """A target's worker has come up."""

    target: str
    versions: Mapping[str, str]
    seconds: float


@dataclass(frozen=True)
class TargetDown:
    """A target's worker could not be started."""

    target: str
    message: str


@dataclass(frozen=True)
class StageBegun:
    """A part of the work has begun, on these targets."""

    stage: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class StageEnded:
    """That part is over; `complete` is False where it was stopped or failed."""

    stage: str
    seconds: float
    complete: bool


@dataclass(frozen=True)
class CaseRun:
    """A target has run the whole case, or failed to."""

    target: str
    outcome: str
    seconds: float
    message: str = ""
    layer: str | None = None


@dataclass(frozen=True)
class MutantsTested:
    """How far a campaign has come."""

    tested: int
    valid: int
    findings: int
    seconds: float = 0.0  # of the campaign, over all its sittings
    share: float = 0.0  # of the budget
    kinds: int = 0  # of layers that were run
    values: int = 0  # classes of parameters' values that were run


@dataclass(frozen=True)
class FindingMet:
    """A finding that this run had not met before."""

    fingerprint: str
    kind: str
    triage: str
    title: str
    accused: str | None


@dataclass(frozen=True)
class Broken:
    """The run has ended without a result; `reason` is empty where the user stopped it."""

    reason: str


@dataclass(frozen=True)
class Finished:
    """The run has come to a result, before the gate; None: the store's tables hold it."""

    verdict: str | None
    summary: str
    result: Mapping[str, Any] | None = None


Event = (
    Started
    | TargetUp
    | TargetDown
    | StageBegun
    | StageEnded
    | CaseRun
    | MutantsTested
    | FindingMet
    | Broken
    | Finished
)
KINDS: Mapping[str, type[Event]] = {
    "started": Started,
    "target up": TargetUp,
    "target down": TargetDown,
    "stage begun": StageBegun,
    "stage ended": StageEnded,
    "case run": CaseRun,
    "mutants tested": MutantsTested,
    "finding": FindingMet,
    "broken": Broken,
    "finished": Finished,
}
_NAMES = {made: name for name, made in KINDS.items()}


def kind_of(event: Event) -> str:
    return _NAMES[type(event)]


def event_data(event: Event) -> dict[str, Any]:
    """An event as plain data."""
    return asdict(event)


def event_of(kind: str, data: Mapping[str, Any]) -> Event:
    """The event that `event_data` made it of."""
    values: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in data.items()
    }
    return KINDS[kind](**values)
