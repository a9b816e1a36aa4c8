"""The finding of a stage of training: judged, and shown by the smallest exercise that does."""

from __future__ import annotations

import math
from dataclasses import dataclass

from outvote.bench.bench import Bench
from outvote.bench.exercise import Exercised, do, observe
from outvote.core.exercises import Exercise
from outvote.core.model import Layer
from outvote.findings.finding import Finding, Stage, cause_of, title_at
from outvote.judge.observation import Observation
from outvote.triage.stage_inquiry import StageInquiry, WholeModel
from outvote.triage.stage_smaller import smaller
from outvote.triage.stage_verdict import StageVerdict, decide_stage


@dataclass(frozen=True)
class StagePlace:
    """Where in training something was seen: the stage, and how people are told of the place."""

    stage: str
    told: str
    subject: str  # the kind of the layer, the loss or the optimiser
    layer: Layer | None = None

    @property
    def kind(self) -> str | None:
        return self.layer.kind if self.layer else None


@dataclass(frozen=True)
class StageTeller:
    """Makes findings of what targets differ on; `minimise`: of the smallest exercise."""

    bench: Bench
    dialect: str
    minimise: bool = True

    def finding(
        self,
        done: Exercised,
        part: str,
        seen: Observation,
        place: StagePlace,
        whole: WholeModel | None = None,
    ) -> Finding:
        verdict = decide_stage(StageInquiry(self.bench, done, part, seen, place.kind, whole))
        if verdict.triage != "precision" and self.minimise and whole is None:
            done, seen, verdict = self._small(done, part, seen, place.kind, verdict)
        accused = verdict.wrong[0] if verdict.wrong else None
        far = seen.distance if math.isfinite(seen.distance) else None
        return Finding(
            kind=seen.kind or "inconsistency",
            title=title_at(seen.kind or "", accused, place.told, seen),
            reason=verdict.reason,
            targets=verdict.wrong or tuple(n for group in seen.vote.groups for n in group),
            accused=accused,
            triage=verdict.triage,
            dialect=self.dialect,
            layer=place.layer,
            distance=far,
            metric="relative" if seen.kind == "inconsistency" else None,
            library=cause_of(self.bench.targets[accused], place.kind) if accused else None,
            stage=Stage(
                place.stage,
                place.subject,
                done.exercise,
                part,
                done.told(part),
                verdict.expected,
                verdict.source,
                seen.tolerance,
                verdict.points,
            ),
        )

    def _small(
        self, done: Exercised, part: str, seen: Observation, kind: str | None, verdict: StageVerdict
    ) -> tuple[Exercised, Observation, StageVerdict]:
        """The same of a smaller exercise, if the verdict on it is the same."""
        names = [*done.replies, *done.failures]

        def shows(exercise: Exercise) -> bool:
            found = observe(self.bench, do(self.bench, exercise, names), part, kind=kind)
            return found.symptom() == seen.symptom()

        small = do(self.bench, smaller(done.exercise, shows), names)
        found = observe(self.bench, small, part, kind=kind)
        again = decide_stage(StageInquiry(self.bench, small, part, found, kind))
        alike = (again.triage, again.wrong) == (verdict.triage, verdict.wrong)
        return (small, found, again) if alike else (done, seen, verdict)
