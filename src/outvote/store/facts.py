"""What is known of a campaign as a whole: every fact that the store keeps, with its type.

Campaigns note them, summaries read them; nobody else needs to know how they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T", covariant=True)


@dataclass(frozen=True, eq=False)
class Fact(Generic[T]):
    """One fact: the name it is stored under, and what holds before it is noted."""

    name: str
    default: T


SCHEMA = Fact("schema", 0)  # of the store
JOB: Fact[Any] = Fact("job", None)  # FuzzJob.stored(); None: this is no campaign
CREATED = Fact("created", "")
RIVALS: Fact[list[str]] = Fact("rivals", [])  # folders inside, of --compare
HELLOS: Fact[dict[str, Any]] = Fact("hellos", {})  # what each target is, and said at the start
STATE: Fact[Any] = Fact("state", None)  # of the strategy; None: the seeds have not run
STATE_TURN: Fact[int | None] = Fact("state_turn", None)  # the last one in it; None: all are
STRONGEST: Fact[Any] = Fact("strongest", None)  # LEMON's counting, Strongest.state()
INTERRUPTED = Fact("interrupted", True)  # until it has ended

# Of whoever is at work in the folder now, be it a campaign or another command.
OWNER: Fact[dict[str, Any]] = Fact("owner", {})  # its process, store/owner.py
POSITIONS: Fact[dict[str, Any]] = Fact("positions", {})  # by target: [steps done, of, layer]
CREWS: Fact[list[dict[str, Any]]] = Fact("crews", [])  # on a cluster: what each does now
PAUSED = Fact("paused", False)  # a campaign that is asked to wait before its next generation

# Of the layers: how often each kind was drawn, which could be, which could not and why, classes of
# parameters' values, illegal values that no target refused.
KINDS: Fact[dict[str, int]] = Fact("kinds", {})
DRAWABLE: Fact[list[str]] = Fact("drawable", [])
NOT_COVERED: Fact[dict[str, str]] = Fact("not_covered", {})
VALUES: Fact[dict[str, int]] = Fact("values", {})
ACCEPTED: Fact[dict[str, int]] = Fact("accepted", {})
# What an oracle could not look at, in sentences.
LEFT_OUT: Fact[list[str]] = Fact("left_out", [])

# Of each target: how many lines of its library's Python it can be told of, reached or not.
LINES: Fact[dict[str, int]] = Fact("lines", {})

# Of a campaign in bulk: what was run and compared; [second, cases until then]; stretches of numbers
# [from, to] that were begun and are not at their end, and the number behind all stretches.
SIFTED: Fact[dict[str, Any]] = Fact("sifted", {})
SIFTED_OVER_TIME: Fact[list[list[float]]] = Fact("sifted_over_time", [])
SIFTED_LEFT: Fact[list[list[Any]]] = Fact("sifted_left", [])

# Odd mutants that nobody has looked into: their numbers, and [what they look like, how often]. What
# was looked into: [its key, findings that it shows].
WAITING: Fact[list[int]] = Fact("waiting", [])
LOOKED_INTO: Fact[list[list[list[str]]]] = Fact("looked_into", [])
WAITING_KINDS: Fact[list[list[Any]]] = Fact("waiting_kinds", [])

# Totals of all sittings: seconds, and how often.
SECONDS = Fact("seconds", 0.0)
STARTING = Fact("starting", 0.0)
MAKING = Fact("making", 0.0)
LOOKING = Fact("looking", 0.0)
LOOKING_AFTER = Fact("looking_after", 0.0)  # of these, after the end of the budget
CONFIRMING = Fact("confirming", 0.0)
LOOKS = Fact("looks", 0)
ROUNDING = Fact("rounding", 0)
FLAKY = Fact("flaky", 0)
RECYCLED = Fact("recycled", 0)
REFUSED_DRAWS = Fact("refused_draws", 0)
RESTARTS: Fact[dict[str, int]] = Fact("restarts", {})  # of each target, as the next two
BUSY: Fact[dict[str, float]] = Fact("busy", {})
PEAKS: Fact[dict[str, int]] = Fact("peaks", {})

ALL: Mapping[str, Fact[Any]] = {
    fact.name: fact for fact in list(globals().values()) if isinstance(fact, Fact)
}
