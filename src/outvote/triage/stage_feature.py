"""What an optimiser does beside its own rule, and targets differ in: clipping, decay, averaging,
or gradients that name some rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from outvote.bench.bench import Bench
from outvote.bench.exercise import do, observe
from outvote.core.dialect import dialect
from outvote.core.exercises import Update
from outvote.triage.stage_inquiry import StageInquiry
from outvote.triage.stage_verdict import decide_stage

SPARSE = "sparse gradients"


def feature_of(bench: Bench, update: Update, names: Sequence[str], spoken: str) -> str | None:
    """The feature without which targets agree; None: they differ in the rule itself."""
    if any(rows is not None for rows in update.rows) and _agree(bench, update.whole(), names):
        return SPARSE
    for feature, without in dialect(spoken).lesson.features(update.optimizer).items():
        if _agree(bench, replace(update, optimizer=without), names):
            return feature
    return None


def _agree(bench: Bench, update: Update, names: Sequence[str]) -> bool:
    """Whether nothing is left of a difference but rounding."""
    done = do(bench, update, names)
    seen = observe(bench, done, "weights")
    if seen.kind is None:
        return bool(done.replies)
    return decide_stage(StageInquiry(bench, done, "weights", seen)).triage == "precision"
