"""What targets made of one specimen, held against each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outvote.core.outputs import Outputs
from outvote.core.target import Run
from outvote.judge.vote import Vote


@dataclass(frozen=True)
class Observation:
    """One experiment: who gave what, and who stands alone."""

    outputs: Mapping[str, Outputs]
    failures: Mapping[str, Run]
    kind: str | None  # inconsistency, nan, shape, crash, hang; None: they agree
    distance: float
    tolerance: float
    vote: Vote
    layer_kind: str | None = None

    @property
    def odd(self) -> tuple[str, ...]:
        """Those that stand against the majority; everyone where there is none."""
        return self.vote.outvoted or tuple(n for group in self.vote.groups for n in group)

    def symptom(self) -> tuple[Any, ...]:
        """What must stay the same while the specimen shrinks."""
        heads = sorted((name, error_head(run)) for name, run in self.failures.items())
        return (self.kind, self.vote.decided, sorted(self.vote.outvoted), heads)


def error_head(run: Run) -> str:
    """The kind of an error: its type and the beginning of its text, without numbers and names."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"|[\d\[\](),.\-]+", " ", run.message)
    return " ".join([run.outcome.value, str(run.reply.get("error", "")), *text.split()[:6]])
