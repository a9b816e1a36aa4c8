"""A mutant that takes one target far longer than usual, and again when it is repeated."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import median

from outvote.campaign.investigate import Conclusion
from outvote.campaign.oracle import Judged
from outvote.campaign.performance.drift import slow_targets
from outvote.campaign.performance.stopwatch import slowest_layer
from outvote.campaign.runner import ModelRun, Runner, inside
from outvote.campaign.seeds import Seed
from outvote.core.dialect import signature
from outvote.core.model import Model
from outvote.core.target import Target
from outvote.findings.finding import Finding

NAME = "slowness"
TITLE = "a mutant takes one target 20 times longer than usual, everything compiled"
_RECENT = 200  # cases that say what is usual
_FEWEST = 50


class Slowness:
    """Knows how long each target usually takes, and which layers are known to be slow."""

    def __init__(self, runner: Runner, targets: Mapping[str, Target]) -> None:
        self._runner = runner
        self._targets = targets
        self._usual = {name: deque[float](maxlen=_RECENT) for name in runner.names}
        self._known: dict[tuple[str, str], str] = {}  # target, layer's signature → fingerprint

    def look(self, seed: Seed, model: Model, judged: Judged) -> Conclusion:
        """A case that takes one target far longer than usual is repeated; then it is a finding."""
        seconds = {name: inside(run) for name, run in judged.runs.items() if run.ok}
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

    def _explained(self, name: str, model: Model) -> str | None:
        """The finding of a slow layer that this model holds too."""
        found = (self._known.get((name, signature(model.dialect, layer))) for layer in model.layers)
        return next((fingerprint for fingerprint in found if fingerprint), None)

    def _slow(
        self,
        name: str,
        seed: Seed,
        model: Model,
        seconds: Mapping[str, float],
        usual: Mapping[str, float],
    ) -> Finding:
        layer, told = slowest_layer(self._runner, name, seed, model)
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


def create(runner: Runner, targets: Mapping[str, Target]) -> Slowness:
    return Slowness(runner, targets)
