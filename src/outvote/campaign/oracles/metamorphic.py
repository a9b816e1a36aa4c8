"""A new layer on which a target contradicts itself, whatever other targets say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from outvote.bench.bench import Bench
from outvote.bench.reader import choose_reference
from outvote.campaign.investigate import Conclusion
from outvote.campaign.oracle import Judged
from outvote.campaign.runner import ModelRun, Runner
from outvote.campaign.seeds import Seed
from outvote.core.cuts import one_layer
from outvote.core.model import Layer, Model
from outvote.core.specimen import Specimen
from outvote.core.states import State
from outvote.core.target import Target
from outvote.findings.finding import Finding
from outvote.judge.compare import Settings
from outvote.triage.relate import Relater

NAME = "metamorphic"
TITLE = "a target contradicts itself on a layer: see the relations below"
IF_ASKED = True


def require(targets: Sequence[Target]) -> None:
    """One is enough."""


class Metamorphic:
    """Holds every target against itself on every new layer; knows what was told."""

    def __init__(self, runner: Runner, targets: Mapping[str, Target]) -> None:
        self._runner = runner
        self._targets = {name: targets[name] for name in runner.names}
        self._relater = Relater(Bench(runner.pool, self._targets, Settings()), confirm=1)
        self._known: dict[tuple[str, str, str], str] = {}  # target, relation, kind → fingerprint

    def look(self, seed: Seed, model: Model, judged: Judged) -> Conclusion:
        """Each layer that was watched, alone, on the tensors that it reads in the model."""
        names = dict.fromkeys(name for found in judged.hidden.values() for name in found)
        layers = [model.layer(name) for name in names]
        concluded = Conclusion()
        if not layers:
            return concluded
        reads = list(dict.fromkeys(name for layer in layers for name in layer.inputs))
        able = [name for name in judged.outputs if self._targets[name].can("watch")]
        who = choose_reference(able, self._targets)
        states = self._runner.hidden(who, ModelRun(seed, model, reads))
        for layer in layers if states is not None else ():
            given = [states[ref.producer][ref.index] for ref in layer.refs()] if states else []
            for name in judged.outputs:
                concluded += self._held(name, layer, given, model.dialect)
        return concluded

    def _held(self, name: str, layer: Layer, given: Sequence[State], spoken: str) -> Conclusion:
        alone, arrays = one_layer(spoken, layer, given)
        fresh: list[Finding] = []
        again: set[str] = set()
        for broken in self._relater.broken(name, Specimen(alone, tuple(arrays))):
            key = name, broken.relation.NAME, layer.kind
            if key in self._known:
                again.add(self._known[key])
                continue
            finding = self._relater.finding(broken)
            self._known[key] = finding.fingerprint
            fresh.append(finding)
        return Conclusion(tuple(fresh), frozenset(again))


def create(runner: Runner, targets: Mapping[str, Target]) -> Metamorphic:
    return Metamorphic(runner, targets)
