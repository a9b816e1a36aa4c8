"""Measures time and memory of targets during a campaign, and makes findings of what stands out."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from statistics import median

from outvote.bench.seconds import layer_seconds
from outvote.campaign.investigate import Conclusion, signature
from outvote.campaign.performance.drift import Drift, culprit, drifts, slow_targets
from outvote.campaign.runner import ModelRun, Runner, inside
from outvote.campaign.seeds import Seed
from outvote.core.model import Layer, Model
from outvote.core.target import Run, Target
from outvote.findings.finding import Finding
from outvote.store.store import Sample

_RECENT = 200  # cases that say what is usual
_FEWEST = 50
_REPEATS = 3
_CONFIRM = 3  # samples more, before a target is accused of a drift
_POINTS = 12  # of a series, in a sentence


class Stopwatch:
    """Knows how long each target usually takes, and which layers are known to be slow."""

    def __init__(self, runner: Runner, targets: Mapping[str, Target]) -> None:
        self._runner = runner
        self._targets = targets
        self._usual = {name: deque[float](maxlen=_RECENT) for name in runner.names}
        self._known: dict[tuple[str, str], str] = {}  # target, layer's signature → fingerprint

    def check(self, seed: Seed, model: Model, runs: Mapping[str, Run]) -> Conclusion:
        """A case that takes one target far longer than usual is repeated; then it is a finding."""
        seconds = {name: inside(run) for name, run in runs.items() if run.ok}
        usual = {n: median(self._usual[n]) for n in seconds if len(self._usual[n]) >= _FEWEST}
        for name, taken in seconds.items():
            self._usual[name].append(taken)
        if len(usual) < len(self._usual):
            return Conclusion()
        slow = slow_targets(seconds, usual)
        known = {name: self._explained(name, model) for name in slow}
        again = frozenset(fingerprint for fingerprint in known.values() if fingerprint)
        if all(known.values()):
            return Conclusion(again=again)
        repeats = [self._runner.alone(ModelRun(seed, model)) for _ in range(2)]
        if not all(run.ok for runs in repeats for run in runs.values()):
            return Conclusion(again=again)
        best = {name: min(inside(runs[name]) for runs in repeats) for name in self._usual}
        fresh = [name for name in slow_targets(best, usual) if not known.get(name)]
        return Conclusion(tuple(self._slow(n, seed, model, best, usual) for n in fresh), again)

    def sample(self, seed: Seed, number: int) -> list[Sample]:
        """A seed, as a whole, on every target: how long, and how large the worker is."""
        pool = self._runner.pool
        # The best of a few: a busy machine makes some runs slow, and none fast.
        repeats = [self._runner.alone(ModelRun(seed, seed.case.model)) for _ in range(_REPEATS)]
        return [
            Sample(
                number,
                name,
                min(inside(runs[name]) for runs in repeats),
                pool.memory(name),
                pool.restarts[name],
            )
            for name in self._runner.names
            if all(runs[name].ok for runs in repeats)
        ]

    def drifts(self, samples: Sequence[Sample], seed: Seed) -> list[Finding]:
        """Targets that need ever more for the same work, and still do when measured again."""
        if not drifts(samples):
            return []
        last = samples[-1].mutant
        again = [sample for _ in range(_CONFIRM) for sample in self.sample(seed, last)]
        return [self._drifted(drift, seed) for drift in drifts([*samples, *again])]

    def growths(self, samples: Sequence[Sample]) -> list[Finding]:
        """Of those, what nothing has to be measured for: memory."""
        return [self._drifted(d, None) for d in drifts(samples) if d.what == "bytes"]

    def _explained(self, name: str, model: Model) -> str | None:
        """The finding of a slow layer that this model holds too."""
        found = (self._known.get((name, signature(model.dialect, layer))) for layer in model.layers)
        return next((fingerprint for fingerprint in found if fingerprint), None)

    def _slowest_layer(self, name: str, seed: Seed, model: Model) -> tuple[Layer | None, str]:
        """The layer that makes a target slow, if it is one, and what each target takes there."""
        inputs = seed.case.data.inputs
        pool = self._runner.pool
        seconds = {n: layer_seconds(pool, n, model, inputs) for n in self._runner.names}
        slowest = culprit(seconds, {layer.name: layer.kind for layer in model.layers}, name)
        if slowest is None:
            return None, ""
        layer = model.layer(slowest)
        told = ", ".join(
            f"{n} {own[slowest]:.3g} s" for n, own in seconds.items() if slowest in own
        )
        return layer, f" {layer.kind} layer {layer.name!r} alone, built and compiled: {told}."

    def _slow(
        self,
        name: str,
        seed: Seed,
        model: Model,
        seconds: Mapping[str, float],
        usual: Mapping[str, float],
    ) -> Finding:
        layer, told = self._slowest_layer(name, seed, model)
        each = ", ".join(f"{n} {s:.2f} s (usually {usual[n]:.3f} s)" for n, s in seconds.items())
        kinds = ", ".join(item.kind for item in model.layers)
        place = f"in {layer.kind} layer {layer.name!r}" if layer else "for one mutant"
        finding = Finding(
            kind="performance",
            title=f"{name} takes {seconds[name]:.1f} s {place}, the others do not",
            reason=f"The best of two repetitions, everything compiled: {each}.{told} "
            f"Layers of the mutant: {kinds}.",
            targets=(name,),
            accused=name,
            triage="unknown",
            dialect=self._targets[name].dialect,
            library=self._targets[name].library,
            layer=layer,
        )
        if layer is not None:
            self._known[name, signature(model.dialect, layer)] = finding.fingerprint
        return finding

    def _drifted(self, drift: Drift, seed: Seed | None) -> Finding:
        """A finding with its series; the layer is searched in the seed that was measured."""
        unit = "s" if drift.what == "seconds" else "MiB"
        what = "time" if drift.what == "seconds" else "memory"
        scale = 1.0 if drift.what == "seconds" else 1 / 2**20
        points = [f"{number}: {value * scale:.3g}" for number, value in drift.series]
        some = points[:: -(-len(points) // _POINTS)]
        layer, told = (None, "")
        if seed is not None and drift.what == "seconds":
            layer, told = self._slowest_layer(drift.target, seed, seed.case.model)
        place = f", in {layer.kind} layer {layer.name!r}" if layer else ""
        return Finding(
            kind="performance",
            title=f"{drift.target} needs ever more {what} for the same model{place}: "
            f"{drift.before * scale:.3g} {unit}, later {drift.after * scale:.3g} {unit}",
            reason="The seed was run again and again during the campaign, and the other targets "
            f"did not grow like that. {unit} after mutant number: {', '.join(some)}.{told}",
            targets=(drift.target,),
            accused=drift.target,
            triage="unknown",
            dialect=self._targets[drift.target].dialect,
            # Time and memory of one library are two causes.
            library=f"{self._targets[drift.target].library}: {what}",
            layer=layer,
            detail=f"{unit} after mutant number\n" + "\n".join(points),
        )
