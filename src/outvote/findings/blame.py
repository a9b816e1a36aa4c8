"""From what differed to who and which layer: localises until every difference has a finding."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from outvote.bench.noise import NoiseFloor
from outvote.bench.reader import choose_reference
from outvote.core.case import Case, balanced_batch
from outvote.core.dialect import dialect
from outvote.core.model import Layer, Model
from outvote.core.outputs import Outputs
from outvote.core.target import Outcome, Run, Target
from outvote.findings.finding import (
    Finding,
    cause_of,
    findings_from_failures,
    findings_from_faults,
)
from outvote.findings.region import told_region
from outvote.judge.compare import Comparison, Settings
from outvote.judge.observation import kind_of
from outvote.judge.precision import coarser
from outvote.judge.rows import DecisionRow, Words, first, sentence
from outvote.judge.tolerance import DIGIT, LOST_DIGITS
from outvote.judge.vote import Vote, vote
from outvote.localize.layers import Localization, localize
from outvote.localize.stuck import first_stuck_layer
from outvote.localize.whole_graph import first_deviating_layer
from outvote.run.pool import Pool

Pair = tuple[str, str]


@dataclass(frozen=True)
class WholeGraph:
    """What is known of a pair that differs though no layer alone does."""

    targets: Pair
    kind: str
    compiled: tuple[str, ...]
    outvoted: tuple[str, ...]
    distance: float
    explained: float | None  # by the noise of the whole graph, on that input; None: not measured
    uncut: str = ""  # what it means that one of the pair differs which has no layers

    @property
    def suspect(self) -> str:
        return (*self.outvoted, *self.compiled, *self.targets)[0]

    @property
    def adds_up(self) -> bool:
        """Whether rounding of many layers may come to as much."""
        return self.explained is not None and self.distance < LOST_DIGITS * self.explained


_ALONE = "Fed with the same tensors every layer agrees. "
_INTERFERE = (
    "The difference needs several layers at once, as when a compiler fuses them or one spoils "
    "another's memory."
)
_WORDS: Mapping[str, Callable[[WholeGraph], str]] = {
    "explained": lambda w: f"{w.explained or 0:.2g}",
    "uncut": lambda w: w.uncut,
    "distance": lambda w: f"{w.distance:.2g}",
}
WHOLE_GRAPH: tuple[DecisionRow[WholeGraph], ...] = (
    DecisionRow(
        "adds-up",
        "numbers differ, no target of the pair compiles the graph, and the distance is less than "
        f"{LOST_DIGITS:.3g} times what the noise of the whole graph explains on that input",
        lambda w: w.kind == "inconsistency" and not w.compiled and w.adds_up,
        "precision",
        "Moving every tensor of the graph by one last place explains {explained}; {distance} is "
        "not far beyond: small differences of single layers add up.",
    ),
    DecisionRow(
        "uncut",
        "a target of the pair runs the model as a whole alone: the module that a program was "
        "exported from",
        lambda w: bool(w.uncut),
        "unknown",
        "The result differs: {uncut}. In which layer cannot be said, since it is not cut into any.",
    ),
    DecisionRow(
        "interfere",
        "a majority outvotes a target of the pair",
        lambda w: bool(w.outvoted),
        "bug",
        _INTERFERE,
        lambda w: w.outvoted[:1],
        "the outvoted",
    ),
    DecisionRow("interfere-undecided", "otherwise", lambda w: True, "unknown", _INTERFERE),
)


@dataclass(frozen=True)
class Blame:
    """Localises failures and differences of one case on the targets of a pool."""

    pool: Pool
    case: Case
    settings: Settings
    batch_size: int
    outputs: Mapping[str, Outputs]  # of the targets that finished
    # One input shows a fault in its smallest form; a whole batch has shapes that were compiled.
    one_input: bool = True
    # Of a grid of versions, many pairs differ on the same input: it is stepped through once.
    _located: dict[Any, Localization] = field(default_factory=dict, repr=False, compare=False)

    @property
    def _finished(self) -> dict[str, Target]:
        return {name: self.pool.targets[name] for name in self.outputs}

    def failures(self, runs: Mapping[str, Run]) -> list[Finding]:
        """Where a target raised, look at every layer alone: the one that raised may be a victim."""
        raised = [name for name, run in runs.items() if run.outcome is Outcome.ERROR]
        found: list[Finding] = []
        if raised:
            involved = {**self._finished, **{name: self.pool.targets[name] for name in raised}}
            reference = choose_reference(tuple(self._finished), involved)
            first = self._one(0) if self.one_input else self._batch_of(0)
            located = self._localize(first, reference, involved)
            faults = findings_from_faults(located, involved, first[:1])
            found = [finding for finding in faults if told_by(finding) & set(raised)]
        told = {name for finding in found for name in told_by(finding)}
        rest = {name: self._placed(run) for name, run in runs.items() if name not in told}
        return found + findings_from_failures(rest, self.pool.targets, self.case.model)

    def _placed(self, run: Run) -> Run:
        """A run that hung and did not say where, with the layer that hangs alone."""
        able = [n for n, t in self._finished.items() if t.can("watch") and t.is_eager]
        if run.outcome is not Outcome.HANG or run.layer or not able:
            return run
        inputs = self.case.data.take(self._one(0))
        layer = first_stuck_layer(self.pool, self.case.model, inputs, able[0], run.target)
        return replace(run, layer=layer.name) if layer else run

    def differences(
        self,
        comparisons: Sequence[Comparison],
        explained: Collection[Pair],
        noise: NoiseFloor | None,
    ) -> list[Finding]:
        """A finding for every inconsistent pair that rounding does not explain; each cause once."""
        apart = [p for p in comparisons if p.inconsistent and p.targets not in explained]
        voted = self._vote([p.targets for p in comparisons if p not in apart])
        found: dict[str, Finding] = {}
        while apart:
            pair = max(apart, key=lambda p: len(set(p.targets) & set(voted.outvoted)))
            new = self._explain(pair, voted, noise)
            found = {**by_cause(new), **found}
            blamed = {name for f in new for name in ([f.accused] if f.accused else f.targets)}
            apart = [p for p in apart if p is not pair and not blamed & set(p.targets)]
        return sorted(found.values(), key=self._place)

    def inside(self, index: int) -> tuple[list[Finding], Localization]:
        """Faults of single layers on one input, whatever the outputs say; and what was compared."""
        targets = {n: t for n, t in self._finished.items() if not t.compiles_slowly}
        targets = targets if len(targets) > 1 else self._finished
        located = self._localize([index], choose_reference(list(targets), targets), targets)
        return findings_from_faults(located, targets, [index]), located

    def _explain(self, pair: Comparison, voted: Vote, noise: NoiseFloor | None) -> list[Finding]:
        """Localise on the pair's worst input; if it alone shows nothing, on its whole batch."""
        finished = {
            name: target
            for name, target in self._finished.items()
            if name in pair.targets or not (target.compiles_slowly or target.original)
        }
        agreeing = [name for name in voted.majority if name in finished]
        reference = choose_reference(agreeing or list(finished), finished)
        index = self._worst_input(pair, noise)
        worst, whole = self._one(index), self._batch_of(index)
        for indices in (worst, whole) if self.one_input else (whole,):
            located = self._localize(indices, reference, finished)
            faults = findings_from_faults(located, finished, worst)
            found = [finding for finding in faults if set(finding.targets) & set(pair.targets)]
            if found or len(whole) <= 1:
                break
        if found and all(finding.triage == "precision" for finding in found):
            found += self._beyond_precision(pair, voted, located, noise)
        if found:
            found += self._beyond_layers(pair, voted, located, noise)
        return found or [self._whole_graph(pair, voted, located, noise)]

    def _beyond_layers(
        self, pair: Comparison, voted: Vote, located: Localization, noise: NoiseFloor | None
    ) -> list[Finding]:
        """What only the whole graph shows, where faults of single layers come to much less."""
        model = self.case.model
        whole = self._whole(pair, voted, noise, self._worst_input(pair, noise))
        compiled = not self.pool.targets[whole.suspect].is_eager
        if dialect(model.dialect).regions is None or not compiled or whole.kind != "inconsistency":
            return []
        layers = located.carried.get(whole.suspect, {})
        shown = [layers.get(ref.producer, math.nan) for ref in model.outputs]
        if not whole.distance > DIGIT * max(shown):  # NaN is no evidence
            return []
        return [self._whole_graph(pair, voted, located, noise)]

    def _beyond_precision(
        self, pair: Comparison, voted: Vote, located: Localization, noise: NoiseFloor | None
    ) -> list[Finding]:
        """What adds up, in layers that a target's own precision explains, to more than it does."""
        index = self._worst_input(pair, noise)
        whole = self._whole(pair, voted, noise, index)
        suspect = whole.suspect
        setting = coarser(self.pool.start([suspect])[suspect].reply.precision)
        layer = _growth(self.case.model, located.carried.get(suspect, {}))
        if setting is None or layer is None or whole.kind != "inconsistency":
            return []
        if not whole.explained or setting.explains(whole.distance / whole.explained, layer):
            return []
        decided = bool(whole.outvoted)
        finding = Finding(
            kind="inconsistency",
            title=f"{suspect} differs by {whole.distance:.2g} (relative), more than {setting.name} "
            f"explains; most of it comes in at {layer.kind} layer {layer.name!r}",
            reason=f"Every layer alone is off by no more than {setting.name} explains. Rounding in "
            f"float32 moves the outputs by {whole.explained:.2g}. {voted.reason}.",
            targets=(suspect,) if decided else pair.targets,
            accused=suspect if decided else None,
            triage="bug" if decided else "unknown",
            dialect=self.case.model.dialect,
            layer=layer,
            distance=whole.distance,
            metric="relative",
            inputs=tuple(self._one(index)),
            library=cause_of(self.pool.targets[suspect], layer.kind) if decided else None,
            localization=located,
        )
        return [finding]

    def _worst_input(self, pair: Comparison, noise: NoiseFloor | None) -> int:
        """Farthest apart, of the inputs that rounding does not explain."""
        left = noise.left(pair, self.outputs) if noise and pair.mismatch is None else ()
        return left[0] if left else pair.worst_input

    def _one(self, index: int) -> list[int]:
        """That input alone; of an empty batch, none."""
        return [index] if self.case.data.count else []

    def _batch_of(self, index: int) -> list[int]:
        batch = max(1, balanced_batch(self.case.data.count, self.batch_size))
        start = index // batch * batch
        return list(range(start, min(start + batch, self.case.data.count)))

    def _localize(
        self, indices: Sequence[int], reference: str, targets: Mapping[str, Target]
    ) -> Localization:
        asked = (tuple(indices), reference, tuple(targets))
        if asked not in self._located:
            inputs = self.case.data.take(indices)
            self._located[asked] = localize(
                self.pool, self.case.model, inputs, reference, targets, self.settings
            )
        return self._located[asked]

    def _vote(self, agreements: Sequence[Pair]) -> Vote:
        """Who is outvoted by the model's outputs; pairs explained by rounding agree."""
        targets = self._finished
        borrowed = next(
            (
                layer.kind
                for layer in self.case.model.layers
                if any(t.implementation_of(layer.kind) != t.library for t in targets.values())
            ),
            None,
        )
        return vote(targets, agreements, borrowed)

    def _whole_graph(
        self, pair: Comparison, voted: Vote, located: Localization, noise: NoiseFloor | None
    ) -> Finding:
        """A pair that differs though no layer alone does: rounding adds up, or layers interfere."""
        index = self._worst_input(pair, noise)
        whole = self._whole(pair, voted, noise, index)
        row = first(WHOLE_GRAPH, whole)
        metric = next((m for m in pair.measured if m.inconsistent), None)
        worst = float(metric.distances[index]) if metric is not None else math.nan
        finding = Finding(
            kind=whole.kind,
            title=f"{' and '.join(pair.targets)} differ, and no layer alone shows it",
            reason=f"{'' if whole.uncut else _ALONE}{sentence(row, Words(whole, _WORDS))} "
            f"{voted.reason}.",
            targets=pair.targets,
            accused=None,
            triage=row.triage,
            dialect=self.case.model.dialect,
            distance=worst if math.isfinite(worst) else None,
            metric=metric.name if metric else None,
            inputs=tuple(self._one(index)),
            localization=located,
        )
        if row.triage == "precision":
            return finding
        if whole.uncut:
            return finding.but(title=f"{' and '.join(pair.targets)} differ: {whole.uncut}")
        return self._parting(finding, whole)

    def _parting(self, finding: Finding, whole: WholeGraph) -> Finding:
        """The same, with the layer at which the outputs part, and who parts from whom."""
        suspect, model = whole.suspect, self.case.model
        other = next(name for name in whole.targets if name != suspect)
        inputs = self.case.data.take_one(finding.inputs)
        layer = first_deviating_layer(self.pool, model, inputs, (other, suspect), self.settings)
        region = told_region(self.pool, suspect, model, inputs, layer.name) if layer else ""
        place = f"; the outputs part at {layer.kind} layer {layer.name!r}" if layer else ""
        accused = suspect if finding.triage == "bug" else None
        return finding.but(
            title=f"{suspect} differs from {other} in the whole graph only{place}",
            reason=f"{finding.reason}{region}",
            targets=(accused,) if accused else finding.targets,
            accused=accused,
            layer=layer,
            library=cause_of(self.pool.targets[accused], None) if accused else None,
        )

    def _whole(
        self, pair: Comparison, voted: Vote, noise: NoiseFloor | None, index: int
    ) -> WholeGraph:
        a, b = (self.outputs[name] for name in pair.targets)
        apart = [m.distances[index] for m in pair.measured if m.name == "relative"]
        return WholeGraph(
            targets=pair.targets,
            kind=kind_of(a, b),
            compiled=tuple(n for n in pair.targets if not self.pool.targets[n].is_eager),
            outvoted=tuple(n for n in pair.targets if n in voted.outvoted),
            distance=float(max(apart, default=0.0)),
            explained=noise.limit(index) if noise else None,
            uncut=next((t.uncut for n in pair.targets if (t := self.pool.targets[n]).uncut), ""),
        )

    def _place(self, finding: Finding) -> int:
        """Findings stand in the order of their layers; those without one come last."""
        names = [layer.name for layer in self.case.model.layers]
        return names.index(finding.layer.name) if finding.layer else len(names)


def _growth(model: Model, carried: Mapping[str, float]) -> Layer | None:
    """The layer in which the error of a target's own tensors grows most; None: none is known."""
    grown = {
        layer.name: carried[layer.name]
        - max((carried.get(n, 0.0) for n in layer.inputs), default=0)
        for layer in model.layers
        if math.isfinite(carried.get(layer.name, math.nan))
    }
    return model.layer(max(grown, key=lambda name: grown[name])) if grown else None


def told_by(finding: Finding) -> set[str]:
    """The targets of a finding, and those whose refusal speaks against them."""
    refused = finding.fault if finding.fault and finding.fault.is_refused else None
    return {*finding.targets, *(refused.failures if refused else ())}


def amplified_rounding(
    model: Model,
    pairs: Sequence[Comparison],
    explained: Collection[Pair],
    noise: NoiseFloor | None,
) -> list[Finding]:
    """Metrics of the paper that rounding alone brings to their threshold: told, never a bug."""
    found: dict[str, list[Comparison]] = {}
    for pair in pairs:
        for measured in pair.measured:
            if measured.inconsistent and pair.targets in explained:
                found.setdefault(measured.name, []).append(pair)
    found.pop("relative", None)
    if noise is None:
        return []
    return [_rounding(model, name, reached, noise) for name, reached in found.items()]


def _rounding(model: Model, metric: str, pairs: Sequence[Comparison], noise: NoiseFloor) -> Finding:
    measured = [m for pair in pairs for m in pair.measured if m.name == metric and m.inconsistent]
    worst = max(measured, key=lambda m: m.maximum)
    return Finding(
        kind="inconsistency",
        title=f"rounding alone brings the metric {metric} to its threshold on {len(pairs)} "
        f"pair{'s' * (len(pairs) != 1)}",
        reason=f"Moving every tensor by one unit in the last place moves the outputs by "
        f"{noise.largest():.2g} (relative), and the pairs differ by no more than a small multiple "
        "of that.",
        targets=tuple(dict.fromkeys(name for pair in pairs for name in pair.targets)),
        accused=None,
        triage="precision",
        dialect=model.dialect,
        distance=worst.maximum,
        metric=metric,
        inputs=tuple(int(i) for i in worst.triggering[:8]),
    )


def by_cause(findings: Sequence[Finding]) -> dict[str, Finding]:
    """One of each fingerprint: what a type explains says less than what it does not."""
    ordered = sorted(findings, key=lambda finding: finding.triage != "precision")
    return {finding.fingerprint: finding for finding in ordered}
