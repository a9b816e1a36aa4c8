"""Measures time and memory of targets during a campaign, and makes findings of what grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from outvote.bench.seconds import layer_seconds
from outvote.campaign.performance.drift import Drift, culprit, drifts
from outvote.campaign.runner import ModelRun, Runner, inside
from outvote.campaign.seeds import Seed
from outvote.core.model import Layer, Model
from outvote.core.target import Target
from outvote.findings.finding import Finding
from outvote.store.store import Sample

_REPEATS = 3
_CONFIRM = 3  # samples more, before a target is accused of a drift
_POINTS = 12  # of a series, in a sentence


class Stopwatch:
    """Runs the same model again and again: it should take what it took."""

    def __init__(self, runner: Runner, targets: Mapping[str, Target]) -> None:
        self._runner = runner
        self._targets = targets

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

    def _drifted(self, drift: Drift, seed: Seed | None) -> Finding:
        """A finding with its series; the layer is searched in the seed that was measured."""
        unit = "s" if drift.what == "seconds" else "MiB"
        what = "time" if drift.what == "seconds" else "memory"
        scale = 1.0 if drift.what == "seconds" else 1 / 2**20
        points = [f"{number}: {value * scale:.3g}" for number, value in drift.series]
        some = points[:: -(-len(points) // _POINTS)]
        layer, told = (None, "")
        if seed is not None and drift.what == "seconds":
            layer, told = slowest_layer(self._runner, drift.target, seed, seed.case.model)
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


def slowest_layer(runner: Runner, name: str, seed: Seed, model: Model) -> tuple[Layer | None, str]:
    """The layer that makes a target slow, if it is one, and what each target takes there."""
    inputs = seed.case.data.inputs
    pool = runner.pool
    seconds = {n: layer_seconds(pool, n, model, inputs) for n in runner.names}
    slowest = culprit(seconds, {layer.name: layer.kind for layer in model.layers}, name)
    if slowest is None:
        return None, ""
    layer = model.layer(slowest)
    told = ", ".join(f"{n} {own[slowest]:.3g} s" for n, own in seconds.items() if slowest in own)
    return layer, f" {layer.kind} layer {layer.name!r} alone, built and compiled: {told}."
