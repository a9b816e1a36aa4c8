"""Targets held against themselves: which relations they break, in which layer, on how little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.reader import reader
from outvote.bench.relation import Answer, Relation, ask, plain_run
from outvote.bench.steps import steps
from outvote.core.arrays import Array
from outvote.core.cuts import one_layer
from outvote.core.dialect import dialect, signature
from outvote.core.model import Model, digest_of
from outvote.core.specimen import Specimen
from outvote.core.text import shortened
from outvote.findings.finding import Finding, Proof, cause_of
from outvote.judge.observation import Observation
from outvote.relations import all_relations
from outvote.triage.examine import Workbench
from outvote.triage.minimise import Minimal, minimise


@dataclass(frozen=True)
class Breach:
    """A relation that a target breaks, and on what."""

    name: str
    relation: Relation
    specimen: Specimen
    answer: Answer


@dataclass
class Relater:
    """Asks targets for every relation that has a meaning; counts how often each was asked."""

    bench: Bench
    seconds: float = 20.0  # to make one finding small
    confirm: int = 0  # fresh workers in which it must show again
    asked: Counter[str] = field(default_factory=Counter)

    def of_model(self, name: str, model: Model, inputs: Sequence[Array]) -> list[Finding]:
        """Every layer alone, each kind with the same parameters once; then the model as a whole."""
        broken: list[Breach] = []
        seen: set[str] = set()
        for step in steps(self.bench.pool, model, inputs, name, []):
            shapes = [state.array.shape for state in step.given]
            key = digest_of(signature(model.dialect, step.layer), shapes)
            if key not in seen and step.given:
                seen.add(key)
                alone, arrays = one_layer(model.dialect, step.layer, step.given)
                broken += self.broken(name, Specimen(alone, tuple(arrays)))
        known = {one.relation.NAME for one in broken}
        whole = self.broken(name, Specimen(model, tuple(inputs))) if len(model.layers) > 1 else ()
        broken += [one for one in whole if one.relation.NAME not in known]
        told: dict[tuple[str, str], Finding] = {}
        for one in broken:  # a cause once, before it is made small
            key_of = one.relation.NAME, one.specimen.last.kind
            if key_of not in told:
                told[key_of] = self.finding(one)
        return list(told.values())

    def broken(self, name: str, specimen: Specimen) -> Iterator[Breach]:
        """The relations that do not hold for a specimen."""
        asked = plain_run(self.bench, name, specimen)
        if asked is None:
            return
        for relation in all_relations(specimen.model.dialect).values():
            answer = ask(asked, relation)
            if answer is not None:
                self.asked[relation.NAME] += 1
                if not answer.holds:
                    yield Breach(name, relation, specimen, answer)

    def finding(self, broken: Breach) -> Finding:
        """It made small and shown again, told as a finding."""
        small = self._small(broken)
        shown = self._again(broken, small.specimen) if small.smaller else broken.answer
        answer, specimen = (shown, small.specimen) if shown else (broken.answer, broken.specimen)
        times = sum(self._in_fresh(broken, specimen) for _ in range(self.confirm))
        return self._told(broken, answer, replace(small, specimen=specimen), times)

    def _again(self, broken: Breach, specimen: Specimen) -> Answer | None:
        """The same relation on another specimen, if it breaks it in the same way."""
        asked = plain_run(self.bench, broken.name, specimen)
        answer = ask(asked, broken.relation) if asked else None
        same = answer is not None and answer.seen.kind == broken.answer.seen.kind
        return answer if same else None

    def _in_fresh(self, broken: Breach, specimen: Specimen) -> bool:
        for name in {broken.name, broken.answer.twin.target or broken.name}:
            self.bench.pool.recycle(name)
        return self._again(broken, specimen) is not None

    def _small(self, broken: Breach) -> Minimal:
        whole = broken.specimen
        if self.seconds <= 0 or broken.answer.seen.kind == "hang":
            return Minimal(whole, whole, 0.0, 0, False)
        able = self.bench.pool.targets[broken.name].can("make")
        builder = broken.name if able else reader(list(self.bench.targets.values())).name
        tools = Workbench(self.bench, builder)
        return minimise(
            whole, lambda one: self._again(broken, one) is not None, tools, self.seconds
        )

    def _told(self, broken: Breach, answer: Answer, small: Minimal, times: int) -> Finding:
        name, seen, relation = broken.name, answer.seen, broken.relation
        specimen, kind = small.specimen, seen.kind or ""
        layer = specimen.last
        whole = "" if len(specimen.model.layers) == 1 else ", in the whole graph only"
        proof = Proof(
            specimen,
            seen,
            {},
            {},
            len(broken.specimen.model.layers),
            broken.specimen.numbers,
            small.seconds,
            small.complete,
            source=f"{name} itself: {relation.TITLE}",
            expected=seen.outputs[name],
            shown=times if self.confirm else None,
            tried=self.confirm,
        )
        flaky = "" if times == self.confirm else " It did not show again in every fresh worker."
        is_number = kind == "inconsistency" and np.isfinite(seen.distance)
        return Finding(
            kind=kind,
            title=f"{name} {_deed(seen)} in {layer.kind} layer {layer.name!r}{whole}, "
            f"though {relation.TITLE}",
            reason=f"{name} was held against itself, by the relation {relation.NAME!r}: "
            f"{relation.TITLE}. Rounding, measured on both ways, explains at most "
            f"{seen.tolerance:.2g}. `outvote check {_file(specimen)} --data inputs.npz "
            f"--oracle metamorphic --targets {name}` shows it.{flaky}",
            targets=(name,),
            accused=name,
            triage="unknown" if flaky else "bug",
            dialect=specimen.model.dialect,
            layer=layer,
            distance=seen.distance if is_number else None,
            metric="relative" if is_number else None,
            library=cause_of(self.bench.targets[name], layer.kind),
            detail="\n".join(run.detail for run in seen.failures.values()),
            proof=proof,
            relation=relation.NAME,
        )


def _deed(seen: Observation) -> str:
    """What a target does that contradicts what it does otherwise."""
    if seen.failures:
        (run,) = seen.failures.values()
        return f"{'hangs' if seen.kind == 'hang' else 'fails'} ({shortened(run.message)})"
    far = f" by {seen.distance:.2g} (relative)" if np.isfinite(seen.distance) else ""
    return {"nan": "gives NaN on one way alone", "shape": "gives another shape or dtype"}.get(
        seen.kind or "", f"differs from itself{far}"
    )


def _file(specimen: Specimen) -> str:
    return dialect(specimen.model.dialect).files.CASE_FILE
