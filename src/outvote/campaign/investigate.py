"""From a suspicious mutant to findings: the layer alone, on every target, with equal tensors.

What is found once is not looked into again: a layer of the same kind and parameters on which the
same targets part in the same way is a further hit of the same finding.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from outvote.bench.bench import Bench
from outvote.bench.noise import measure_noise
from outvote.bench.reader import choose_reference
from outvote.bench.steps import Step, alone
from outvote.campaign.oracle import Judged
from outvote.campaign.runner import ModelRun, Runner
from outvote.campaign.seeds import Seed
from outvote.core.case import Case
from outvote.core.cuts import one_layer
from outvote.core.dialect import signature
from outvote.core.model import Layer, Model, digest_of
from outvote.core.protocol import CloseSession
from outvote.core.states import State
from outvote.core.target import Outcome, Run, Target
from outvote.findings.blame import Blame, told_by
from outvote.findings.finding import Finding, findings_from_faults, head_of
from outvote.judge.compare import Comparison, Settings
from outvote.localize.isolated import judge_step
from outvote.localize.layers import Localization
from outvote.triage.confirm import confirmed
from outvote.triage.examine import TOGETHER, Examiner

_REMEMBERED = 20_000


@dataclass(frozen=True)
class Conclusion:
    """What came of looking into one trial."""

    findings: tuple[Finding, ...] = ()
    again: frozenset[str] = frozenset()  # fingerprints of findings seen once more
    rounding: bool = False  # the outputs differ, and rounding explains it
    accepted: str = ""  # the illegal value that no target refused
    left_out: frozenset[str] = frozenset()  # what an oracle could not look at, in sentences

    def __add__(self, other: Conclusion) -> Conclusion:
        return Conclusion(
            self.findings + other.findings,
            self.again | other.again,
            self.rounding or other.rounding,
            self.accepted or other.accepted,
            self.left_out | other.left_out,
        )

    @property
    def fingerprints(self) -> frozenset[str]:
        return frozenset(finding.fingerprint for finding in self.findings)


@dataclass(frozen=True)
class Recognised:
    """What of a case is explained by findings that are known."""

    again: frozenset[str] = frozenset()  # their fingerprints
    all_of_it: bool = True  # nothing is left that a look could explain


class Investigator:
    """Looks into mutants, and remembers which layers are guilty and which are cleared."""

    def __init__(
        self, runner: Runner, targets: Sequence[Target], settings: Settings, seconds: float
    ) -> None:
        self._runner = runner
        self._pool = runner.pool
        self._spoken = targets[0].dialect
        self.targets = {target.name: target for target in targets}
        self._settings = settings
        self._guilty: dict[str, dict[str, tuple[str, ...]]] = {}  # layer → fingerprint → targets
        self._partings: dict[str, set[str]] = {}  # layer, and how targets part → fingerprints
        self._cleared: set[str] = set()
        self._failures: dict[str, str] = {}
        self._told_as: dict[str, str] = {}  # fingerprint before and after the examination
        self._examiner = Examiner(self._pool, self.targets, settings, seconds)
        self.examined: dict[str, Finding] = {}  # by fingerprint
        self.looks = 0

    def look(self, seed: Seed, model: Model, judged: Judged) -> Conclusion:
        """Why targets differ on a model, as far as they do."""
        if not judged.suspicious:
            return Conclusion()
        case = seed.case_of(model)
        found = self._failed(case, judged) + self._odd_layers(seed, model, judged)
        known = self._known_of(model)
        guilty = {name for names in known.values() for name in names}
        guilty |= {name for finding in found.findings for name in finding.targets}
        found += Conclusion(again=_concerned(known, judged.apart))
        apart = [pair for pair in judged.apart if not guilty & set(pair.targets)]
        if apart and not found.findings and len(judged.outputs) > 1:
            found += self._whole(seed, case, judged, apart)
        concluded = Conclusion(again=found.again, rounding=found.rounding)
        for finding in found.findings:
            concluded += self._examine(finding, case)
        return concluded

    def recognised(self, model: Model, judged: Judged) -> Recognised:
        """The findings that explain how targets part, as far as that takes no run."""
        if not judged.suspicious:
            return Recognised()
        parts = [
            self._told({self._failures.get(_failure_key(name, run, model), "")})
            for name, run in judged.failed.items()
        ]
        for name in judged.odd:
            key = self._parting_key(model.layer(name), judged)
            parts.append(self._told(self._partings.get(key, ())))
        known = self._known_of(model)
        guilty = {name for names in known.values() for name in names}
        explained = all(guilty & set(pair.targets) for pair in judged.apart)
        again = _concerned(known, judged.apart).union(*parts)
        return Recognised(again, explained and all(parts))

    def _examine(self, finding: Finding, case: Case) -> Conclusion:
        """Small, with a verdict, and only if its cause is not known yet."""
        known = next((f for f in self.examined.values() if f.covers(finding)), None)
        if known is not None:
            self._remember(known, finding)
            return Conclusion(again=frozenset({known.fingerprint}))
        inputs = case.data.take_one(finding.inputs)
        batch = case.data.take(range(min(TOGETHER, case.data.count)))
        examined = self._examiner.examine(finding, case.model, inputs, batch)
        if examined.triage == "precision":
            return Conclusion(rounding=True)
        examined = examined.but(localization=None)
        if examined.proof is not None:  # its weights are needed again at the end
            for layer in examined.proof.specimen.model.layers:
                for weight in layer.weights:
                    self._pool.blobs.pin(weight.digest)
        self.examined.setdefault(examined.fingerprint, examined)
        self._remember(examined, finding)
        return Conclusion((examined,))

    @property
    def bench(self) -> Bench:
        return self._examiner.bench

    def accused(self, concluded: Conclusion) -> set[str]:
        """The targets that what was concluded speaks against."""
        again = [self.examined[found] for found in concluded.again if found in self.examined]
        return {name for finding in (*concluded.findings, *again) for name in finding.targets}

    def confirm(
        self, times: int, seconds: float | None, chosen: Collection[str] | None = None
    ) -> list[Finding]:
        """What this sitting found, or what is chosen of it, shown again in fresh workers.

        Only what the `seconds` are enough for, if there are so many.
        """
        names = self.examined.keys() if chosen is None else self.examined.keys() & chosen
        found = [f for n, f in self.examined.items() if n in names]
        return confirmed(self.bench, found, times, seconds)

    def _odd_layers(self, seed: Seed, model: Model, judged: Judged) -> Conclusion:
        """New layers on which targets differ: run each alone, on the same tensors."""
        again: frozenset[str] = frozenset()
        fresh = []
        for layer in map(model.layer, judged.odd):
            known = self._told(self._partings.get(self._parting_key(layer, judged), ()))
            again |= known
            if not known and _key(seed, model, [layer.name]) not in self._cleared:
                fresh.append(layer)
        if not fresh:
            return Conclusion(again=again)
        names = list(dict.fromkeys(name for layer in fresh for name in layer.inputs))
        reference = self._reference(judged.hidden)
        states = self._runner.hidden(reference, ModelRun(seed, model, names))
        if states is None:
            return Conclusion(again=again)
        findings: list[Finding] = []
        for layer in fresh:
            found = self.isolate(layer, [states[ref.producer][ref.index] for ref in layer.refs()])
            findings += found
            parted = self._partings.setdefault(self._parting_key(layer, judged), set())
            parted.update(finding.fingerprint for finding in found)
            if not found:
                self._clear(_key(seed, model, [layer.name]))
        return Conclusion(tuple(findings), again)

    def _parting_key(self, layer: Layer, judged: Judged) -> str:
        return digest_of(signature(self._spoken, layer), judged.odd[layer.name])

    def _told(self, fingerprints: Iterable[str]) -> frozenset[str]:
        """Of findings as they came up, those that were worth telling, as they were told."""
        told = {self._told_as.get(fingerprint, "") for fingerprint in fingerprints}
        return frozenset(told & self.examined.keys())

    def _known_of(self, model: Model) -> dict[str, tuple[str, ...]]:
        """The findings on layers like those of a model, each with its targets."""
        found: dict[str, tuple[str, ...]] = {}
        for layer in model.layers:
            found.update(self._guilty.get(signature(self._spoken, layer), {}))
        return found

    def _clear(self, key: str) -> None:
        if len(self._cleared) > _REMEMBERED:
            self._cleared.clear()
        self._cleared.add(key)

    def isolate(self, layer: Layer, given: Sequence[State]) -> list[Finding]:
        """The layer as a model of its own, on every target."""
        self.looks += 1
        plain = [state.bare() for state in given]
        model, _ = one_layer(self._spoken, layer, plain)
        names = list(self.targets)
        step = alone(self._pool, names, model, given)
        gaps = {n: r for n, r in step.failed.items() if r.outcome is Outcome.UNSUPPORTED}
        failed = {n: r for n, r in step.failed.items() if n not in gaps}
        step = Step(step.layer, step.given, {}, step.isolated, failed)
        if not step.isolated:
            return []
        reference = self._reference(step.isolated)
        taking_part = {n: t for n, t in self.targets.items() if n not in gaps}
        rounding, fault = judge_step(self._pool, step, taking_part, self._settings)
        self._pool.ask_all(list(step.isolated), CloseSession())
        if fault is None:
            return []
        found = Localization(reference, {}, {}, {layer.name: rounding.tolerance}, {}, (fault,))
        return [f.but(localization=None) for f in findings_from_faults(found, taking_part, [0])]

    def _failed(self, case: Case, judged: Judged) -> Conclusion:
        again, fresh = set(), {}
        for name, run in judged.failed.items():
            known = self._failures.get(_failure_key(name, run, case.model))
            if known is None:
                fresh[name] = run
            else:
                again.add(self._told_as.get(known, known))
        if not fresh:
            return Conclusion(again=frozenset(again))
        self.looks += 1
        runs = {n: r for n, r in judged.runs.items() if r.ok or n in fresh}
        found = [f.but(localization=None) for f in self._blame(case, judged).failures(runs)]
        for finding in found:
            for name in told_by(finding) & set(fresh):
                key = _failure_key(name, fresh[name], case.model)
                self._failures[key] = finding.fingerprint
        return Conclusion(tuple(found), frozenset(again))

    def _whole(
        self, seed: Seed, case: Case, judged: Judged, apart: Sequence[Comparison]
    ) -> Conclusion:
        """Outputs that differ, and no new layer does: rounding that adds up, or an older layer."""
        key = _key(seed, case.model, [ref.producer for ref in case.model.outputs])
        if key in self._cleared:  # the same outputs as before: a branch of their own was added
            return Conclusion(rounding=True)
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
            self._clear(key)
            return Conclusion(rounding=True)
        found = list(self._blame(case, judged).differences(left, (), noise))
        real = tuple(finding for finding in found if finding.triage != "precision")
        return Conclusion(real, rounding=len(real) < len(found))

    def _blame(self, case: Case, judged: Judged) -> Blame:
        count = case.data.count
        return Blame(self._pool, case, self._settings, count, judged.outputs, one_input=False)

    def _reference(self, names: Iterable[str]) -> str:
        return choose_reference(list(names), self.targets)

    def _remember(self, told: Finding, found: Finding) -> None:
        """A finding as it came up, and as it was told."""
        self._told_as[found.fingerprint] = told.fingerprint
        if found.layer is not None:
            guilty = self._guilty.setdefault(signature(self._spoken, found.layer), {})
            guilty[told.fingerprint] = told.targets


def _key(seed: Seed, model: Model, names: Iterable[str]) -> str:
    """What layers compute from the inputs of a seed."""
    digests = model.digests()
    return digest_of([digests[name] for name in names], seed.name)


def _concerned(known: Mapping[str, Sequence[str]], apart: Iterable[Comparison]) -> frozenset[str]:
    """Findings of which a target is among those that part."""
    parting = {name for pair in apart for name in pair.targets}
    return frozenset(fingerprint for fingerprint, names in known.items() if parting & set(names))


def _failure_key(target: str, run: Run, model: Model) -> str:
    kind = next((item.kind for item in model.layers if item.name == run.layer), None)
    return digest_of(target, kind, head_of(run.message))
