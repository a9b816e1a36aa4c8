"""Seeds whose answers are known: who contradicts them is a finding, also where all targets do."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from outvote.bench.bench import Bench
from outvote.bench.exact import reference_of
from outvote.bench.noise import asking, measured
from outvote.campaign.investigate import Conclusion
from outvote.campaign.oracle import Judged
from outvote.campaign.seeds import Seed
from outvote.core.dialect import dialect
from outvote.core.known_answers import KnownAnswers
from outvote.core.model import Layer
from outvote.core.outputs import Outputs
from outvote.core.specimen import Specimen
from outvote.findings.finding import Finding
from outvote.judge.observation import kind_of

_ANSWER = "the known answer"


def contradictions(
    bench: Bench, seed: Seed, judged: Judged, accused: Collection[str]
) -> Conclusion:
    """What targets answer that the seed's answers exclude, but for those who are accused anyway."""
    found = Conclusion()
    if seed.answers is None:
        return found
    court = _Court(bench, seed, seed.answers)
    for name, outputs in judged.outputs.items():
        told = seed.answers.contradiction(outputs)
        feigned = bench.targets[name].does_feign(outputs.dtypes)
        if told and name not in accused and not feigned:
            found += court.concluded(name, outputs, told)
    return found


@dataclass(frozen=True)
class _Court:
    """Asks whether rounding explains it, and what our own formulas say."""

    bench: Bench
    seed: Seed
    answers: KnownAnswers

    def concluded(self, name: str, outputs: Outputs, told: str) -> Conclusion:
        specimen = Specimen(self.seed.case.model, self.seed.case.data.inputs)
        right = replace(self.answers.outputs, batch=outputs.batch)
        kind = kind_of(right, outputs)
        if kind == "inconsistency" and self._is_rounding(name, outputs, right, specimen):
            return Conclusion(rounding=True)
        exact = reference_of(specimen, self.bench.pool.blobs)
        if exact is not None and not self._excludes(exact, outputs):
            return Conclusion()  # the answer is off, and not the target
        is_right = exact is not None and not self._excludes(exact, right)
        return Conclusion((self._finding(name, kind, told, specimen.last, is_right),))

    def _finding(self, name: str, kind: str, told: str, layer: Layer, is_right: bool) -> Finding:
        """A bug where a formula speaks for the answer; otherwise it is left open who is wrong."""
        target = self.bench.targets[name]
        support = "our own formula gives it too" if is_right else "no formula of ours decides"
        written = dialect(target.dialect).specification
        link = written.link(layer) if written is not None else None
        place = f" {layer.kind} is specified in {link}." if link else ""
        return Finding(
            kind=kind,
            title=f"{name} contradicts {_ANSWER} of {self.seed.name}: {told}",
            reason=f"{self.seed.name} comes with its answer, and {support}.{place}",
            targets=(name,),
            accused=name if is_right else None,
            triage="bug" if is_right else "unknown",
            dialect=target.dialect,
            library=target.library,
            layer=layer,
        )

    def _is_rounding(self, name: str, outputs: Outputs, right: Outputs, specimen: Specimen) -> bool:
        """Whether the target's own noise explains the distance."""
        both = {name: outputs, _ANSWER: right}
        ask = asking(self.bench.pool, specimen.model, specimen.inputs, [name])
        rounding = measured(self.bench.rounding(specimen, both), both, ask, {name: outputs})
        return rounding.explains(outputs, right)

    def _excludes(self, exact: Outputs, found: Outputs) -> bool:
        """By shapes and values: formulas give float64, whatever the type of the result."""
        if len(exact.arrays) != len(found.arrays):
            return True
        alike = Outputs(exact.arrays, found.dtypes)
        return bool(replace(self.answers, outputs=alike).contradiction(found))
