"""From what differed to who and which layer: localises until every difference has a finding."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from outvote.bench.noise import NoiseFloor
from outvote.bench.reading import choose_reference
from outvote.core.case import Case, balanced_batch
from outvote.core.model import Model
from outvote.core.outputs import Outputs
from outvote.core.target import Outcome, Run, Target
from outvote.findings.finding import Finding, findings_from_failures, findings_from_faults
from outvote.judge.compare import Comparison, Settings
from outvote.judge.tolerance import BEYOND_ROUNDING, model_tolerance
from outvote.judge.vote import Vote, vote
from outvote.localize.layers import Localization, localize
from outvote.localize.whole_graph import first_deviating_layer
from outvote.run.pool import Pool

Pair = tuple[str, str]


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
        rest = {name: run for name, run in runs.items() if name not in told}
        return found + findings_from_failures(rest, self.pool.targets, self.case.model)

    def differences(
        self,
        comparisons: Sequence[Comparison],
        explained: Collection[Pair],
        noise: NoiseFloor | None,
    ) -> list[Finding]:
        """A finding for every inconsistent pair that rounding does not explain; each cause once."""
        apart = [p for p in comparisons if p.inconsistent and p.targets not in explained]
        voted = self._vote({pair.targets for pair in apart})
        found: dict[str, Finding] = {}
        while apart:
            pair = max(apart, key=lambda p: len(set(p.targets) & set(voted.outvoted)))
            new = self._explain(pair, voted, noise)
            found = {**{finding.fingerprint: finding for finding in new}, **found}
            blamed = {name for f in new for name in ([f.accused] if f.accused else f.targets)}
            apart = [p for p in apart if p is not pair and not blamed & set(p.targets)]
        return sorted(found.values(), key=self._place)

    def inside(self, index: int) -> list[Finding]:
        """Faults of single layers on one input, whatever the outputs say."""
        targets = {n: t for n, t in self._finished.items() if not t.compiles_slowly}
        located = self._localize([index], choose_reference(list(targets), targets), targets)
        return findings_from_faults(located, targets, [index])

    def _explain(self, pair: Comparison, voted: Vote, noise: NoiseFloor | None) -> list[Finding]:
        """Localise on the pair's worst input; if it alone shows nothing, on its whole batch."""
        finished = {
            name: target
            for name, target in self._finished.items()
            if name in pair.targets or not target.compiles_slowly
        }
        agreeing = [name for name in voted.majority if name in finished]
        reference = choose_reference(agreeing or list(finished), finished)
        worst = self._one(pair.worst_input)
        whole = self._batch_of(pair.worst_input)
        for indices in (worst, whole) if self.one_input else (whole,):
            located = self._localize(indices, reference, finished)
            faults = findings_from_faults(located, finished, worst)
            found = [finding for finding in faults if set(finding.targets) & set(pair.targets)]
            if found or len(whole) <= 1:
                break
        return found or [self._whole_graph(pair, voted, located, noise)]

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
        inputs = self.case.data.take(indices)
        return localize(self.pool, self.case.model, inputs, reference, targets, self.settings)

    def _vote(self, apart: Collection[Pair]) -> Vote:
        """Who is outvoted by the model's outputs; pairs explained by rounding agree."""
        targets = self._finished
        agreements = [pair for pair in combinations(targets, 2) if pair not in apart]
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
        names = pair.targets
        compiled = [name for name in names if not self.pool.targets[name].is_eager]
        metric = next((m for m in pair.measured if m.inconsistent), None)
        worst = metric.maximum if metric is not None else float("nan")
        finding = Finding(
            kind="shape" if pair.mismatch else "nan" if np.isnan(worst) else "inconsistency",
            title=f"{names[0]} and {names[1]} differ, and no layer alone shows it",
            reason="Fed with the same tensors every layer agrees: small differences of single "
            f"layers add up. {voted.reason}.",
            targets=names,
            accused=None,
            triage="precision",
            dialect=self.case.model.dialect,
            distance=None if np.isnan(worst) else worst,
            metric=metric.name if metric else None,
            inputs=tuple(self._one(pair.worst_input)),
            localization=located,
        )
        if not compiled and finding.kind == "inconsistency" and not self._is_far(pair, noise):
            return finding
        accused = next((name for name in names if name in voted.outvoted), None)
        suspect = accused or (compiled or list(names))[0]
        other = next(name for name in names if name != suspect)
        layer = first_deviating_layer(
            self.pool,
            self.case.model,
            self.case.data.take_one([pair.worst_input]),
            (other, suspect),
            self.settings,
        )
        place = f"; the outputs part at {layer.kind} layer {layer.name!r}" if layer else ""
        return finding.but(
            title=f"{suspect} differs from {other} in the whole graph only{place}",
            reason="Fed with the same tensors every layer agrees: the difference needs several "
            f"layers at once, as when a compiler fuses them or one spoils another's memory{place}. "
            f"{voted.reason}.",
            targets=(accused,) if accused else names,
            accused=accused,
            triage="bug" if accused else "unknown",
            layer=layer,
            library=self.pool.targets[accused].library if accused else None,
        )

    def _is_far(self, pair: Comparison, noise: NoiseFloor | None) -> bool:
        """Whether no adding up of rounding takes outputs so far from each other."""
        if noise is None:
            return False
        dtypes = {dtype for found in self.outputs.values() for dtype in found.dtypes}
        floor = max(noise.largest(), *map(model_tolerance, dtypes))
        apart = max((m.maximum for m in pair.measured if m.name == "relative"), default=0.0)
        return apart > BEYOND_ROUNDING * self.settings.noise_factor * floor

    def _place(self, finding: Finding) -> int:
        """Findings stand in the order of their layers; those without one come last."""
        names = [layer.name for layer in self.case.model.layers]
        return names.index(finding.layer.name) if finding.layer else len(names)


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
