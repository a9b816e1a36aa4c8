"""From a suspicious mutant to findings: the layer alone, on every target, with equal tensors.

What is found once is not looked into again: a layer of the same kind and parameters on which the
same targets part in the same way is a further hit of the same finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from outvote.bench.noise import measure_noise
from outvote.bench.reading import choose_reference
from outvote.bench.stepping import Step, alone
from outvote.campaign.oracle import Judged
from outvote.campaign.runner import Runner, Trial
from outvote.campaign.seeds import Seed
from outvote.core.case import Case
from outvote.core.cuts import one_layer
from outvote.core.dialect import dialect
from outvote.core.model import Layer, Model, digest_of
from outvote.core.protocol import CloseSession
from outvote.core.states import State
from outvote.core.target import Outcome, Target
from outvote.findings.blame import Blame, told_by
from outvote.findings.finding import Finding, findings_from_faults, head_of
from outvote.judge.compare import Comparison, Settings
from outvote.localize.isolated import judge_step
from outvote.localize.layers import Localization
from outvote.triage.confirm import confirmed
from outvote.triage.examine import Examiner

_REMEMBERED = 20_000


@dataclass
class Report:
    """What came of one investigation."""

    findings: list[Finding] = field(default_factory=list)
    again: set[str] = field(default_factory=set)  # fingerprints of findings seen once more
    rounding: bool = False  # the outputs differ, and rounding explains it

    @property
    def known(self) -> bool:
        """Whether all there was to say had a finding already."""
        return bool(self.again) and not self.findings


class Investigator:
    """Looks into mutants, and remembers which layers are guilty and which are cleared."""

    def __init__(
        self, runner: Runner, targets: Sequence[Target], settings: Settings, seconds: float
    ) -> None:
        self._runner = runner
        self._pool = runner.pool
        self._spoken = targets[0].dialect
        self._targets = {target.name: target for target in targets}
        self._settings = settings
        self._guilty: dict[str, dict[str, tuple[str, ...]]] = {}  # layer → fingerprint → targets
        self._partings: dict[str, set[str]] = {}  # layer, and how targets part → fingerprints
        self._cleared: set[str] = set()
        self._failures: dict[str, str] = {}
        self._told_as: dict[str, str] = {}  # fingerprint before and after the examination
        self._examiner = Examiner(self._pool, self._targets, settings, seconds)
        self.examined: dict[str, Finding] = {}  # by fingerprint
        self.looks = 0

    def look(self, seed: Seed, model: Model, judged: Judged) -> Report:
        report = Report()
        case = seed.case_of(model)
        if judged.failed:
            self._failed(case, judged, report)
        self._odd_layers(seed, model, judged, report)
        apart = self._unexplained(model, judged.apart, report)
        if apart and not report.findings and len(judged.outputs) > 1:
            self._whole(seed, case, judged, apart, report)
        raw, report.findings = report.findings, []
        for finding in raw:
            self._told_as[finding.fingerprint] = self._examine(finding, case, report)
        return report

    def _examine(self, finding: Finding, case: Case, report: Report) -> str:
        """Small, with a verdict, and only if its cause is not known yet; its fingerprint."""
        known = next((f for f in self.examined.values() if f.covers(finding)), None)
        if known is not None:
            report.again.add(known.fingerprint)
            self._remember(known, finding.layer)
            return known.fingerprint
        inputs = case.data.take_one(finding.inputs)
        examined = self._examiner.examine(finding, case.model, inputs)
        if examined.triage == "precision":
            report.rounding = True
            return finding.fingerprint
        examined = examined.but(localization=None)
        if examined.proof is not None:  # its weights are needed again at the end
            for layer in examined.proof.specimen.model.layers:
                for weight in layer.weights:
                    self._pool.blobs.pin(weight.digest)
        self.examined.setdefault(examined.fingerprint, examined)
        self._remember(examined, finding.layer)
        report.findings.append(examined)
        return examined.fingerprint

    def confirm(self, times: int) -> list[Finding]:
        """What this sitting found, shown again in fresh workers."""
        return confirmed(self._examiner.bench, list(self.examined.values()), times)

    def _odd_layers(self, seed: Seed, model: Model, judged: Judged, report: Report) -> None:
        """New layers on which targets differ: run each alone, on the same tensors."""
        fresh = []
        for layer in map(model.layer, judged.odd):
            known = self._known(self._partings.get(self._parting_key(layer, judged), ()))
            report.again.update(known)
            if not known and _key(seed, model, [layer.name]) not in self._cleared:
                fresh.append(layer)
        if not fresh:
            return
        reference = self._reference(judged.hidden)
        names = list(dict.fromkeys(name for layer in fresh for name in layer.inputs))
        states = self._runner.hidden(reference, Trial(seed, model, names))
        if states is None:
            return
        for layer in fresh:
            given = [states[ref.producer][ref.index] for ref in layer.refs()]
            found = self.isolate(layer, given)
            report.findings += found
            fingerprints = {finding.fingerprint for finding in found}
            self._partings.setdefault(self._parting_key(layer, judged), set()).update(fingerprints)
            if not found:
                self._clear(_key(seed, model, [layer.name]))

    def _parting_key(self, layer: Layer, judged: Judged) -> str:
        return digest_of(signature(self._spoken, layer), judged.odd[layer.name])

    def _known(self, fingerprints: Iterable[str]) -> set[str]:
        """Of findings as they came up, those that were found worth telling, as they were told."""
        told = {self._told_as.get(fingerprint, "") for fingerprint in fingerprints}
        return told & self.examined.keys()

    def _clear(self, key: str) -> None:
        if len(self._cleared) > _REMEMBERED:
            self._cleared.clear()
        self._cleared.add(key)

    def isolate(self, layer: Layer, given: Sequence[State]) -> list[Finding]:
        """The layer as a model of its own, on every target."""
        self.looks += 1
        plain = [state.bare() for state in given]
        model, _ = one_layer(self._spoken, layer, plain)
        names = list(self._targets)
        step = alone(self._pool, names, model, given)
        gaps = {n: r for n, r in step.failed.items() if r.outcome is Outcome.UNSUPPORTED}
        failed = {n: r for n, r in step.failed.items() if n not in gaps}
        step = Step(step.layer, step.given, {}, step.isolated, failed)
        if not step.isolated:
            return []
        reference = self._reference(step.isolated)
        taking_part = {n: t for n, t in self._targets.items() if n not in gaps}
        rounding, fault = judge_step(self._pool, step, taking_part, self._settings)
        self._pool.ask_all(list(step.isolated), CloseSession())
        if fault is None:
            return []
        found = Localization(reference, {}, {}, {layer.name: rounding.tolerance}, {}, (fault,))
        return [f.but(localization=None) for f in findings_from_faults(found, taking_part, [0])]

    def _failed(self, case: Case, judged: Judged, report: Report) -> None:
        fresh = {}
        for name, run in judged.failed.items():
            known = self._failures.get(_failure_key(name, run.layer, run.message, case.model))
            if known is None:
                fresh[name] = run
            else:
                report.again.add(self._told_as.get(known, known))
        if not fresh:
            return
        self.looks += 1
        runs = {n: r for n, r in judged.runs.items() if r.ok or n in fresh}
        for finding in self._blame(case, judged).failures(runs):
            finding = finding.but(localization=None)
            report.findings.append(finding)
            for name in told_by(finding) & set(fresh):
                run = fresh[name]
                key = _failure_key(name, run.layer, run.message, case.model)
                self._failures[key] = finding.fingerprint

    def _unexplained(
        self, model: Model, apart: Iterable[Comparison], report: Report
    ) -> list[Comparison]:
        """Pairs that differ though none of the two is known to err on a layer of this model."""
        guilty: set[str] = set()
        for layer in model.layers:
            known = self._guilty.get(signature(self._spoken, layer), {})
            for fingerprint, targets in known.items():
                guilty.update(targets)
                if any(set(targets) & set(pair.targets) for pair in apart):
                    report.again.add(fingerprint)
        guilty.update(n for f in report.findings for n in f.targets)
        return [pair for pair in apart if not guilty & set(pair.targets)]

    def _whole(
        self,
        seed: Seed,
        case: Case,
        judged: Judged,
        apart: Sequence[Comparison],
        report: Report,
    ) -> None:
        """Outputs that differ, and no new layer does: rounding that adds up, or an older layer."""
        key = _key(seed, case.model, [ref.producer for ref in case.model.outputs])
        if key in self._cleared:  # the same outputs as before: a branch of their own was added
            report.rounding = True
            return
        self.looks += 1
        noise = measure_noise(
            self._pool,
            case,
            judged.outputs,
            apart,
            [self._reference(judged.outputs)],
            self._settings,
            case.data.count,
        )
        explained = noise.explained(apart, judged.outputs) if noise else set()
        left = [pair for pair in apart if pair.targets not in explained]
        if not left:
            report.rounding = True
            self._clear(key)
            return
        for finding in self._blame(case, judged).differences(left, (), noise):
            if finding.triage == "precision":
                report.rounding = True
                continue
            report.findings.append(finding)

    def _blame(self, case: Case, judged: Judged) -> Blame:
        count = case.data.count
        return Blame(self._pool, case, self._settings, count, judged.outputs, one_input=False)

    def _reference(self, names: Iterable[str]) -> str:
        return choose_reference(list(names), self._targets)

    def _remember(self, finding: Finding, layer: Layer | None) -> None:
        if layer is not None:
            guilty = self._guilty.setdefault(signature(self._spoken, layer), {})
            guilty[finding.fingerprint] = finding.targets


def signature(spoken: str, layer: Layer) -> str:
    """Layers that would show the same fault: same kind, same parameters."""
    known = dialect(spoken).layers
    return digest_of(layer.kind, known.parameters(layer), known.dtype(layer))


def _key(seed: Seed, model: Model, names: Iterable[str]) -> str:
    """What layers compute from the inputs of a seed."""
    digests = model.digests()
    return digest_of([digests[name] for name in names], seed.name)


def _failure_key(target: str, layer: str | None, message: str, model: Model) -> str:
    kind = next((item.kind for item in model.layers if item.name == layer), None)
    return digest_of(target, kind, head_of(message))
