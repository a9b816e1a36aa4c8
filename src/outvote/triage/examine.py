"""The line from a raw finding to one with a verdict: specimen → minimise → decide."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.reader import choose_reference, reader
from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.cuts import one_layer
from outvote.core.dialect import dialect
from outvote.core.model import Layer, Model, Ref, digest_of
from outvote.core.specimen import Specimen
from outvote.core.states import State
from outvote.core.target import Target
from outvote.findings.finding import Finding, Proof, cause_of, title_of
from outvote.findings.place import place_of
from outvote.findings.region import told_region
from outvote.judge.compare import Settings
from outvote.judge.observation import Observation
from outvote.judge.tolerance import NEAR
from outvote.localize.causal import Cause
from outvote.localize.parameters import Localizer
from outvote.run.pool import Pool
from outvote.triage.minimise import Minimal, minimise
from outvote.triage.verdict import Verdict, decide

_SECONDS = 20.0  # to make one finding small
_GIVEN = {
    True: "The layer alone, given the same tensors on every target:",
    False: "It takes several layers at once, as when a compiler fuses them or one writes over "
    "what another reads:",
}
TOGETHER = 8  # instances on which a failure is looked for that one alone does not show
_WITNESSES = 2  # targets that stand for the majority while minimising


@dataclass
class Examiner:
    """Examines findings with the workers of a pool."""

    pool: Pool
    targets: Mapping[str, Target]
    settings: Settings
    seconds: float = _SECONDS
    bench: Bench = field(init=False)
    _localizers: dict[str, Localizer] = field(default_factory=dict)  # by who builds layers

    def __post_init__(self) -> None:
        self.bench = Bench(self.pool, self.targets, self.settings)

    def examine(
        self,
        finding: Finding,
        model: Model,
        inputs: Sequence[Array],
        batch: Sequence[Array] = (),
    ) -> Finding:
        """The finding with its smallest specimen and a verdict; as it was where none shows it.

        What fails may fail on the whole `batch` alone.
        """
        if self.seconds <= 0 or finding.triage == "precision" or finding.kind == "performance":
            return finding
        if any(self.targets[name].uncut for name in finding.targets):  # nothing smaller is run
            return finding
        specimens = self._specimens(finding, model, inputs)
        if finding.kind == "crash" and batch:
            specimens.append(Specimen(model, tuple(batch)))
        for specimen in specimens:
            examined = self._with_one(finding, specimen) or self._with(finding, specimen)
            # What adds up in many layers is not settled by one of them.
            is_part = finding.fault is None and specimen is not specimens[-1]
            if examined is not None and not (is_part and examined.triage == "precision"):
                return examined
        if finding.kind == "inconsistency" and self._is_rounding(specimens[0]):
            reason = f"{finding.reason} Looked at again, rounding explains it."
            return finding.but(triage="precision", reason=reason, accused=None)
        if finding.triage == "difference":  # integers of another width, beside another's failure
            return finding
        return finding.but(
            triage="unknown",
            reason=f"{finding.reason} It did not show again, neither in the layer alone nor in "
            "the whole model.",
        )

    def _is_rounding(self, specimen: Specimen) -> bool:
        """Whether targets still differ, and by no more than the noise that is measured here."""
        seen = self.bench.observe(specimen, list(self.targets))
        return seen.kind is None and 0 < seen.gap.times < 1 and not seen.failures

    def _with_one(self, finding: Finding, specimen: Specimen) -> Finding | None:
        """On one instance instead of none, where that fails too: then it is not about the batch."""
        if specimen.count or finding.kind != "crash":
            return None
        filled = [np.ones((1, *array.shape[1:]), array.dtype) for array in specimen.inputs]
        one = specimen.with_inputs(filled)
        seen = self.bench.observe(one, list(self.targets))
        if finding.accused not in seen.failures:
            return None
        if not seen.vote.decided:
            finding = finding.but(accused=None, library=None)
        return self._with(finding, one)

    def _with(self, finding: Finding, specimen: Specimen) -> Finding | None:
        names = [
            n for n, t in self.targets.items() if not t.compiles_slowly or n in finding.targets
        ]
        whole = self.bench.observe(specimen, names)
        side = self._side(finding, whole)
        if side is None:
            return None
        focused = self._focused(specimen, whole, side)
        verdict = decide(self.bench, specimen, focused)
        if verdict.triage == "precision":  # not worth making small
            return finding.but(triage="precision", reason=verdict.reason, accused=None)
        small = Minimal(specimen, specimen, 0.0, 0, False)
        for taking_part in self._witnesses(side, whole, specimen):
            small = self._small(specimen, whole, taking_part, self.seconds - small.seconds)
            if small.complete and not small.smaller:
                return self._told(finding, small, focused, verdict)
            if not small.smaller:
                continue
            seen = self.bench.observe(small.specimen, names)
            apart = self._side(finding, seen)
            if apart is None:
                continue
            again = self._focused(small.specimen, seen, apart)
            second = decide(self.bench, small.specimen, again)
            if second.triage == verdict.triage and not is_other_fault(verdict, second):
                return self._told(finding, small, again, second)
        whole_size = Minimal(specimen, specimen, small.seconds, small.tried, False)
        return self._told(finding, whole_size, focused, verdict)

    def _side(self, finding: Finding, seen: Observation) -> tuple[str, ...] | None:
        """The targets that the finding is about, if they stand apart here too."""
        if seen.kind is None:
            return None
        if finding.accused is None:
            return () if len(seen.vote.groups) > 1 else None
        if finding.accused not in seen.odd:  # what shows is told, whoever is to blame for it
            return ()
        library = self._cause(finding.accused, finding)
        return tuple(n for n in seen.odd if self._cause(n, finding) == library)

    def _cause(self, name: str, finding: Finding) -> str:
        return cause_of(self.targets[name], finding.layer.kind if finding.layer else None)

    def _witnesses(
        self, side: Sequence[str], seen: Observation, specimen: Specimen
    ) -> list[list[str]]:
        """Who is asked while a specimen is made small; where that shows another fault, the next.

        One of the accused, and independent targets of the majority that are quick to ask: a single
        one first, as whoever parts from the majority parts from it.
        """
        kind = specimen.last.kind

        def slowness(name: str) -> tuple[bool, ...]:
            return self._slowness(name, kind)

        if not side or not seen.vote.decided:
            return [[min(group, key=slowness) for group in seen.vote.groups]]
        chosen: dict[str, str] = {}
        for name in sorted(seen.vote.majority, key=slowness):
            chosen.setdefault(self.targets[name].implementation_of(kind), name)
        accused, majority = min(side, key=slowness), list(chosen.values())[:_WITNESSES]
        return [[accused, *majority[: n + 1]] for n in range(len(majority))]

    def _slowness(self, name: str, kind: str) -> tuple[bool, ...]:
        """Of a kind of layer: what another library computes may take what that one takes."""
        target = self.targets[name]
        borrowed = target.implementation_of(kind) != target.library
        compiles = "compiles_per_shape" in target.costs or borrowed
        return not target.is_eager, target.setup is not None, compiles

    def _small(
        self, specimen: Specimen, whole: Observation, taking_part: Sequence[str], seconds: float
    ) -> Minimal:
        """The smallest specimen; every trial of a deadly one costs a worker, so it gets less."""
        unchanged = Minimal(specimen, specimen, 0.0, 0, False)
        if whole.kind == "hang":  # every trial would wait for the time limit
            return unchanged
        first = self.bench.observe(specimen, taking_part)
        if first.kind is None:  # the witnesses do not show it
            return unchanged
        self.bench.retries = 0  # a death is expected now
        try:
            return self._minimal(specimen, first, taking_part, seconds)
        finally:
            self.bench.retries = Bench.retries

    def _minimal(
        self, specimen: Specimen, first: Observation, names: Sequence[str], seconds: float
    ) -> Minimal:
        symptom = first.symptom()

        def shows(candidate: Specimen) -> bool:
            seen = self.bench.observe(candidate, names, quickly=True)
            if seen.symptom() != symptom:
                return False
            if seen.kind != "inconsistency" or not np.isfinite(first.distance):
                return True
            return seen.distance >= NEAR * first.distance

        upright = [n for n in first.outputs if n not in first.vote.outvoted]
        tools = Workbench(self.bench, self._builder_of(upright or list(first.outputs) or names))
        return minimise(specimen, shows, tools, seconds)

    def _focused(self, specimen: Specimen, seen: Observation, side: Sequence[str]) -> Observation:
        """What was observed, without outvoted targets that this finding is not about."""
        others = set(seen.vote.outvoted) - set(side) if side else set()
        if not others or not seen.vote.decided:
            return seen
        kept = [n for n in (*seen.outputs, *seen.failures) if n not in others]
        return self.bench.judged(
            {n: o for n, o in seen.outputs.items() if n in kept},
            {n: r for n, r in seen.failures.items() if n in kept},
            seen.rounding,
            specimen,
        )

    def _told(
        self, finding: Finding, small: Minimal, seen: Observation, verdict: Verdict
    ) -> Finding:
        proof = Proof(
            small.specimen,
            seen,
            *self._matter(small.specimen, seen),
            len(small.before.model.layers),
            small.before.numbers,
            small.seconds,
            small.complete,
            verdict.errors or {},
            verdict.exact.source if verdict.exact else "",
            verdict.exact.outputs if verdict.exact else None,
        )
        layer = small.specimen.last
        wrong = [n for n in verdict.wrong if n in self.targets]
        accused = wrong[0] if wrong and verdict.triage in ("bug", "difference") else None
        if finding.accused in wrong and len({self._cause(n, finding) for n in wrong}) == 1:
            accused = finding.accused  # of several libraries the first, so that they are told once
        if accused is None and verdict.triage == "bug":
            verdict = replace(verdict, triage="unknown", wrong=())
        kind = seen.kind or finding.kind
        alone = len(small.specimen.model.layers) == 1
        to_blame = layer if alone else finding.layer or layer
        region = ""
        if not alone and accused is not None:
            small_model, inputs = small.specimen.model, small.specimen.inputs
            region = told_region(self.pool, accused, small_model, inputs, layer.name)
        where = place_of(self.pool, self.targets, small.specimen, seen, wrong)
        proof = replace(proof, place=where.place, unplaced=where.unknown)
        if alone and accused is not None and kind == "inconsistency":
            proof = replace(proof, causes=self._causes(small.before, proof.matter, seen, wrong))
        return finding.but(
            kind=kind,
            title=title_of(kind, accused, finding.layer or layer, seen, alone),
            reason=f"{_GIVEN[alone]} {verdict.reason}{region}{_written(finding, to_blame)}",
            triage=verdict.triage,
            accused=accused,
            targets=tuple(wrong) or seen.odd,
            layer=finding.layer or layer,
            library=cause_of(self.targets[accused], to_blame.kind) if accused else None,
            distance=seen.distance
            if np.isfinite(seen.distance) and kind == "inconsistency"
            else None,
            metric="relative" if kind == "inconsistency" else None,
            proof=proof,
        )

    def _causes(
        self,
        whole: Specimen,
        matter: Collection[str],
        seen: Observation,
        wrong: Sequence[str],
    ) -> tuple[Cause, ...]:
        """AUDEE's Algorithm 2, on the layer as it was found: small inputs hide differences.

        Of the parameters that matter; what may have its default is no cause where others may not.
        """
        right = [n for n in seen.outputs if n not in wrong]
        if len(whole.model.layers) != 1 or not right:
            return ()
        builder = self._builder(seen)
        if not self.pool.targets[builder].can("make"):
            return ()  # nobody here can say what a changed layer would be
        if builder not in self._localizers:  # it knows that worker's catalogue
            self._localizers[builder] = Localizer(self.pool, builder, seconds=self.seconds)
        pairs = zip(whole.model.inputs, whole.inputs, strict=True)
        given = [State.fed(array, item) for item, array in pairs]
        names = (min(right, key=lambda name: self._slowness(name, whole.last.kind)), wrong[0])
        return tuple(self._localizers[builder].parameters(whole.last, given, names, matter)[0])

    def _matter(
        self, specimen: Specimen, seen: Observation
    ) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Parameters of the minimal layer that are not at their defaults, and those defaults.

        It needs them. Left out are those that Keras itself fills in when the layer is built.
        """
        layer, builder = specimen.last, self._builder(seen)
        defaults = self.bench.defaults(specimen, builder).get(layer.name, {})
        found = {}
        for key, value in dialect(specimen.model.dialect).layers.parameters(layer).items():
            if key not in defaults and isinstance(value, str):
                found[key] = value  # a word that must be given: which activation, for instance
            if key not in defaults or value == defaults[key]:
                continue
            changed = specimen.with_config(layer.name, {**layer.config, key: defaults[key]})
            rebuilt = self.bench.rebuilt(changed, builder)
            if rebuilt is None or rebuilt.last.config.get(key) != value:
                found[key] = value
        return found, defaults

    def _builder(self, seen: Observation) -> str:
        return self._builder_of(list(seen.vote.majority or seen.outputs or seen.failures))

    def _builder_of(self, names: Sequence[str]) -> str:
        """Who says what layers become when they are changed: one of these, or who reads files."""
        able = [name for name in names if self.targets[name].can("make")]
        if able:
            return choose_reference(able, self.targets)
        return reader(list(self.pool.targets.values())).name

    def _specimens(self, finding: Finding, model: Model, inputs: Sequence[Array]) -> list[Specimen]:
        """What to try, smallest first: the layer alone, the model up to it, the whole model."""
        found = []
        given = finding.fault.given if finding.fault else None
        whole = Specimen(model, tuple(inputs))
        if not given and finding.layer is not None:
            given = self._read_by(finding.layer, whole, finding)
        if given and finding.layer is not None:
            alone, arrays = one_layer(model.dialect, finding.layer, given)
            all_outputs = tuple(Ref(finding.layer.name, i) for i in range(_outputs(finding)))
            found.append(Specimen(replace(alone, outputs=all_outputs), tuple(arrays)))
        found.append(whole)
        return found

    def _read_by(self, layer: Layer, whole: Specimen, finding: Finding) -> tuple[State, ...] | None:
        """What a layer reads in the whole model, by a target that gets so far."""
        names = [n for n in self.targets if n not in finding.targets and self.targets[n].is_eager]
        inner = {item.name for item in whole.model.inputs}
        for name in names:
            hidden = [n for n in layer.inputs if n not in inner]
            states = Workbench(self.bench, name).tensors(whole, hidden)
            states |= {
                item.name: [State.fed(array, item)]
                for item, array in zip(whole.model.inputs, whole.inputs, strict=True)
            }
            if all(n in states for n in layer.inputs):
                return tuple(states[ref.producer][ref.index] for ref in layer.refs())
        return None


def is_other_fault(before: Verdict, after: Verdict) -> bool:
    """Whether what was made small accuses none of those that were accused: it shows another one."""
    return bool(before.wrong and after.wrong) and set(before.wrong).isdisjoint(after.wrong)


def _written(finding: Finding, layer: Layer) -> str:
    """Where it is written what the layer should do: that decides what is a fault."""
    written = dialect(finding.dialect).specification
    link = written.link(layer) if written is not None else None
    return f" {layer.kind} is specified in {link}." if link else ""


def _outputs(finding: Finding) -> int:
    """How many tensors the layer gives, as far as any target has shown."""
    shown = finding.fault.outputs.values() if finding.fault else ()
    return max([1, *(len(found.arrays) for found in shown)])


@dataclass(frozen=True)
class Workbench:
    """A worker as the minimiser needs it."""

    bench: Bench
    name: str
    _told: dict[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)  # defaults

    @property
    def blobs(self) -> BlobStore:
        return self.bench.pool.blobs

    def rebuilt(self, specimen: Specimen) -> Specimen | None:
        return self.bench.rebuilt(specimen, self.name)

    def defaults(self, specimen: Specimen) -> Mapping[str, Mapping[str, Any]]:
        key = digest_of([[layer.kind, layer.config] for layer in specimen.model.layers])
        if key not in self._told:  # many a reduction of one specimen asks for them
            self._told[key] = self.bench.defaults(specimen, self.name)
        return self._told[key]

    def tensors(self, specimen: Specimen, names: Sequence[str]) -> dict[str, list[State]]:
        """What layers give, for the whole batch; nothing where the worker cannot say."""
        if not names:
            return {}
        run = self.bench.run(specimen, [self.name], watch=names)[self.name]
        return {name: list(found) for name, found in run.reply.watched.items()} if run.ok else {}
