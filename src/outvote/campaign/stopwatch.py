"""Measures time and memory of targets during a campaign, and makes findings of what stands out."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from statistics import median

from outvote.campaign.investigate import Report
from outvote.campaign.oracle import Judged
from outvote.campaign.performance import Drift, drifts, slow_targets
from outvote.campaign.runner import Runner, Trial, inside
from outvote.campaign.seeds import Seed
from outvote.campaign.store import Sample
from outvote.core.model import Model
from outvote.core.target import Target
from outvote.findings import Finding

_RECENT = 200  # cases that say what is usual
_FEWEST = 50


class Stopwatch:
    """Knows how long each target usually takes."""

    def __init__(self, runner: Runner, targets: Mapping[str, Target]) -> None:
        self._runner = runner
        self._targets = targets
        self._usual = {name: deque[float](maxlen=_RECENT) for name in runner.names}

    def check(self, seed: Seed, model: Model, judged: Judged, report: Report) -> None:
        """A case that takes one target far longer than usual is repeated; then it is a finding."""
        seconds = {name: inside(run) for name, run in judged.runs.items() if run.ok}
        usual = {n: median(self._usual[n]) for n in seconds if len(self._usual[n]) >= _FEWEST}
        for name, taken in seconds.items():
            self._usual[name].append(taken)
        if len(usual) < len(self._usual) or not slow_targets(seconds, usual):
            return
        repeats = [self._runner.alone(Trial(seed, model)) for _ in range(2)]
        if not all(run.ok for runs in repeats for run in runs.values()):
            return
        again = {name: min(inside(runs[name]) for runs in repeats) for name in self._usual}
        for name in slow_targets(again, usual):
            report.findings.append(self._slow(name, model, again, usual))

    def sample(self, seed: Seed, number: int) -> list[Sample]:
        """A seed, as a whole, on every target: how long, and how large the worker is."""
        pool = self._runner.pool
        runs = self._runner.alone(Trial(seed, seed.case.model))
        return [
            Sample(number, name, inside(run), pool.memory(name), pool.restarts[name])
            for name, run in runs.items()
            if run.ok
        ]

    def drifts(self, samples: Sequence[Sample]) -> list[Finding]:
        """Targets that need ever more for the same work."""
        return [_drifted(d, self._targets[d.target].library) for d in drifts(samples)]

    def _slow(
        self, name: str, model: Model, seconds: Mapping[str, float], usual: Mapping[str, float]
    ) -> Finding:
        told = ", ".join(f"{n} {s:.2f} s (usually {usual[n]:.3f} s)" for n, s in seconds.items())
        kinds = ", ".join(layer.kind for layer in model.layers)
        return Finding(
            kind="performance",
            title=f"{name} takes {seconds[name]:.1f} s for one mutant, the others do not",
            reason=f"The best of two repetitions, everything compiled: {told}. Layers: {kinds}.",
            targets=(name,),
            accused=name,
            triage="unknown",
            library=self._targets[name].library,
        )


def _drifted(drift: Drift, library: str) -> Finding:
    unit = "s" if drift.what == "seconds" else "MiB"
    scale = 1.0 if drift.what == "seconds" else 1 / 2**20
    points = ", ".join(f"{number}: {value * scale:.3g}" for number, value in drift.series)
    return Finding(
        kind="performance",
        title=f"{drift.target} needs ever more {'time' if unit == 's' else 'memory'} for the "
        f"same model: {drift.before * scale:.3g} {unit}, later {drift.after * scale:.3g} {unit}",
        reason=f"The seed was run again and again during the campaign. {unit} after mutant "
        f"number: {points}.",
        targets=(drift.target,),
        accused=drift.target,
        triage="unknown",
        library=library,
        detail=drift.what,
    )
