"""Stages of training on which targets differ: each cause is told once, and met again."""

from __future__ import annotations

from outvote.bench.bench import Bench
from outvote.bench.exercise import Exercised, observe
from outvote.campaign.investigate import Conclusion
from outvote.core.exercises import StageCase, Update
from outvote.findings.finding import Finding
from outvote.triage.stage_feature import feature_of
from outvote.triage.stage_teller import StagePlace, StageTeller


class StageJudge:
    """Judges what targets made of an exercise, and remembers how they part."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._known: dict[tuple[object, ...], str] = {}  # stage, subject, who parts → fingerprint

    def judged(self, done: Exercised, part: str, place: StagePlace, spoken: str) -> Conclusion:
        seen = observe(self._bench, done, part, kind=place.kind)
        if seen.kind is None:
            return Conclusion()
        place = self._featured(done, place, spoken)
        key = place.stage, place.subject, part, seen.kind, seen.vote.groups
        if key in self._known:
            return Conclusion(again=frozenset({self._known[key]}))
        finding = StageTeller(self._bench, spoken).finding(done, part, seen, place)
        if finding.triage == "precision":
            return Conclusion(rounding=True)
        self._remember(key, finding)
        return Conclusion((finding,))

    def _featured(self, done: Exercised, place: StagePlace, spoken: str) -> StagePlace:
        """By what an optimiser does besides, which is the same for all of them."""
        update = done.exercise
        if place.stage != "optimiser" or not isinstance(update, Update):
            return place
        names = [*done.replies, *done.failures]
        feature = feature_of(self._bench, update, names, spoken)
        if feature is None:
            return place
        return StagePlace(feature, f"the {feature} of {place.subject}", feature)

    def _remember(self, key: tuple[object, ...], finding: Finding) -> None:
        """A kink explains nothing else that the same targets may differ by."""
        if finding.triage != "difference":
            self._known[key] = finding.fingerprint


def place_of(drawn: StageCase, part: str) -> StagePlace:
    of = "the gradient of " if part == "gradient" else ""
    return StagePlace(drawn.stage, f"{of}the {drawn.stage} {drawn.subject}", drawn.subject)
