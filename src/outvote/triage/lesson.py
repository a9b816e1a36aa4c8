"""Training, stage by stage: forward, loss, gradients in reverse, regularisers, optimiser, steps.

The whole is compared first. Where targets differ, every stage is done alone, on the same arrays,
so that each is accused of its own deeds only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.exercise import Exercised, do, observe
from outvote.bench.lesson_case import LessonCase
from outvote.bench.reader import choose_reference
from outvote.core.arrays import Array
from outvote.core.cuts import one_layer
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.exercises import Exercise, Pull, Update, loss_pull
from outvote.core.lesson import Lesson
from outvote.core.model import Layer, Model, Ref
from outvote.core.parts import LessonWords
from outvote.core.states import State
from outvote.core.train_protocol import Leaf, Named
from outvote.findings.finding import Finding
from outvote.judge.compare import distance
from outvote.judge.observation import Observation
from outvote.localize.composed import is_composed
from outvote.localize.isolated import Fault
from outvote.localize.layers import Localization
from outvote.localize.reverse import (
    GradientChain,
    alone_steps,
    hidden_of,
    pull_of,
    reverse_map,
    reverse_steps,
)
from outvote.triage.first_step import parts_with_gradients
from outvote.triage.stage_feature import feature_of
from outvote.triage.stage_inquiry import WholeModel
from outvote.triage.stage_teller import StagePlace, StageTeller

_FACTORS = (1.0, -0.5, 0.25)  # of the gradients that an optimiser is fed with, in turn


@dataclass(frozen=True)
class StageSeen:
    """One stage that was compared: how far targets are apart, and what was made of it."""

    stage: str
    compared: int  # arrays
    distance: float
    agrees: bool


@dataclass
class Learnt:
    """What is known of a lesson: filled stage by stage."""

    lesson: Lesson
    loss: Named
    targets: tuple[str, ...]
    stages: list[StageSeen] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass
class LessonCheck:
    """A lesson on several targets."""

    bench: Bench
    case: LessonCase
    trained: Learnt
    every_layer: bool = False
    minimise: bool = True  # make what shows a finding small
    whole: dict[str, Observation] = field(default_factory=dict)  # of all stages at once, by part
    at_infinity: bool = False  # NaN or infinity comes to a layer, forward or back

    @property
    def names(self) -> list[str]:
        return list(self.trained.targets)

    @property
    def loss(self) -> Named:
        return self.case.loss

    @property
    def model(self) -> Model:
        """As training calls it."""
        return self.case.model

    @property
    def inputs(self) -> tuple[Array, ...]:
        return self.case.inputs

    @property
    def truth(self) -> Array:
        return self.case.truth

    @property
    def _wing(self) -> LessonWords:
        return dialect(self.model.dialect).lesson

    def run(self) -> None:
        """All stages, in order."""
        whole = Pull(
            self.model, self.inputs, loss=self.loss, truth=self.truth, penalty=self._regularised
        )
        done = do(self.bench, whole, self.names)
        if not done.replies or not done.names("gradient"):
            told = "; ".join(f"{n}: {run.message[:200]}" for n, run in done.failures.items())
            raise UsageError(
                "--train: there is nothing to compare, for no target gives a gradient of the "
                f"model ({told or 'it has no weights that are learned, and no inputs of floats'})"
            )
        apart = [part for part in whole.parts if not self._agree(done, part)]
        if done.failures or apart or self.every_layer:
            self._localise(done, apart)
        self._optimise(done)
        if all(map(_loses_digits_of_updates, self.trained.findings)):
            self._drill(done)

    @property
    def _regularised(self) -> bool:
        return any(self._wing.is_regularised(layer) for layer in self.model.layers)

    def _agree(self, done: Exercised, part: str) -> bool:
        """Whether a part of the whole is the same on all targets, but for rounding."""
        stage = {"value": "loss"}.get(part, part)
        self.whole[part] = self._compare(done, part, stage, whole=True)
        return self.whole[part].kind is None

    def _compare(
        self, done: Exercised, part: str, stage: str, whole: bool = False, kind: str | None = None
    ) -> Observation:
        seen = observe(self.bench, done, part, whole=whole, kind=kind)
        outputs = list(done.outputs(part).values())
        far = [distance(outputs[0], other) for other in outputs[1:]]
        self.trained.stages.append(
            StageSeen(stage, len(done.names(part)), max(far, default=0.0), seen.kind is None)
        )
        return seen

    # Where it comes from.

    def _localise(self, whole: Exercised, apart: Sequence[str]) -> None:
        before = len(self.trained.findings)
        able = [name for name in self.names if name in whole.replies] or self.names
        reference = choose_reference(able, self.bench.targets)
        held, failed = hidden_of(self.bench, self.model, self.inputs, reference)
        if failed is not None:
            self.trained.warnings.append(
                f"{reference} could not compute the model layer by layer ({failed.message}): "
                "gradients were compared as a whole only"
            )
        else:
            if "forward" in apart or self.every_layer:
                self._forward(held)
            # What a layer behind hides of a wrong output, it may not hide of gradients.
            hidden = "gradient" in apart and not ("forward" in apart or self.every_layer)
            self._reverse(held, reference, self._loss_alone(held), hidden)
            self._penalties(held)
        if len(self.trained.findings) == before:
            for part in apart:
                told = self._whole_graph(whole, part)
                if told is not None and told.triage == "difference":
                    break  # of the loss: its gradient differs for the same reason

    def _forward(self, held: dict[str, tuple[State, ...]]) -> None:
        """Every layer as training calls it, on the same tensors."""
        for layer in self.model.layers:
            pull = self._alone(layer, held)
            self._tell_output(do(self.bench, pull, self.names), layer)

    def _tell_output(self, done: Exercised, layer: Layer) -> None:
        seen = observe(self.bench, done, "forward", kind=layer.kind)
        if seen.kind is not None:
            self._tell(done, "forward", seen, "forward", f"{_place(layer)} in training", layer)

    def _alone(self, layer: Layer, held: dict[str, tuple[State, ...]], **more: Any) -> Pull:
        """A layer whose outputs are asked for; ones are its cotangents."""
        ones = {
            Ref(layer.name, place): np.ones_like(state.array)
            for place, state in enumerate(held[layer.name])
            if state.array.dtype.kind == "f"
        }
        found = pull_of(self.model, layer, held, ones)
        if found is None:  # whole numbers: nothing to differentiate, and nothing learned
            given = [held[ref.producer][ref.index] for ref in layer.refs()]
            model, arrays = one_layer(self.model.dialect, layer, given)
            found = Pull(model, tuple(arrays))
        return replace(found, **more)

    def _loss_alone(self, held: dict[str, tuple[State, ...]]) -> Exercised:
        done = do(self.bench, self._loss_pull(held), self.names)
        kind = str(self.loss["class_name"])
        for part, what in (("value", "the loss"), ("gradient", "the gradient of the loss")):
            seen = self._compare(done, part, "loss")
            if seen.kind is not None:
                self._tell(done, part, seen, "loss", f"{what} {kind}", None)
        return done

    def _loss_pull(self, held: dict[str, tuple[State, ...]]) -> Pull:
        end = self.model.outputs[0]
        state = held[end.producer][end.index]
        return loss_pull(self.model.dialect, state.array, state.dtype, self.loss, self.truth)

    def _reverse(
        self,
        held: dict[str, tuple[State, ...]],
        reference: str,
        loss: Exercised,
        with_outputs: bool,
    ) -> None:
        """Every layer alone; where one differs, the map of whole chains shows how far it comes."""
        seeds = {
            name: reply.gradients[0].array
            for name, reply in loss.replies.items()
            if reply.gradients and reply.gradients[0].array is not None
        }
        if reference not in seeds:
            return
        faults, found = [], []
        alone: dict[str, dict[str, float]] = {n: {} for n in seeds if n != reference}
        for layer, done in alone_steps(self._chain(held, seeds, reference), list(seeds)):
            given = done.outputs("gradient")
            for name in given.keys() & alone.keys() if reference in given else ():
                alone[name][layer.name] = distance(given[reference], given[name])
            if with_outputs:
                self._tell_output(done, layer)
            if not self._is_finite(layer, done.exercise):
                self.at_infinity = True
                continue
            for part in ("gradient", "statistics"):
                seen = self._compare(done, part, part, kind=layer.kind)
                if seen.kind is None:
                    continue
                where = f"the {part} of {_place(layer)}"
                finding = self._tell(done, part, seen, part, where, layer)
                faults.append(_fault(layer, seen))
                if finding is not None:
                    found.append(finding)
        if not found:
            return
        chains = {name: self._chain(held, seeds, name) for name in seeds}
        chained = reverse_map(self.model, reference, list(reverse_steps(chains, reference)))
        located = Localization(
            reference, chained.introductions, alone, {}, {}, tuple(faults), back=True
        )
        self.trained.findings = [
            f.but(localization=located) if f in found else f for f in self.trained.findings
        ]

    def _is_finite(self, layer: Layer, exercise: Exercise) -> bool:
        """Whether a layer is asked for a derivative at numbers: there is none at infinity."""
        get = self.bench.pool.blobs.get
        weights = (np.asarray(get(weight.digest)) for weight in layer.weights)
        given = exercise.is_finite if isinstance(exercise, Pull) else True
        return given and all(np.isfinite(w).all() for w in weights if w.dtype.kind == "f")

    def _chain(
        self, held: dict[str, tuple[State, ...]], seeds: Mapping[str, Array], name: str
    ) -> GradientChain:
        return GradientChain(
            self.bench, self.model, held, name, {self.model.outputs[0]: seeds[name]}
        )

    def _penalties(self, held: dict[str, tuple[State, ...]]) -> None:
        for layer in self.model.layers:
            if not self._wing.is_regularised(layer) or layer.shares is not None:
                continue
            pull = replace(self._alone(layer, held), cotangents=(), penalty=True)
            done = do(self.bench, pull, self.names)
            for part in ("value", "gradient"):
                seen = self._compare(done, part, "regulariser")
                if seen.kind is not None:
                    place = f"the {'gradient of the ' * (part == 'gradient')}regulariser of"
                    self._tell(done, part, seen, "regulariser", f"{place} {_place(layer)}", layer)

    def _whole_graph(self, done: Exercised, part: str) -> Finding | None:
        """No stage alone differs: several do, or the library does other things with the whole."""
        stage = {"value": "loss"}.get(part, part)
        place = f"the {stage} of the whole model"
        whole = WholeModel(
            lambda: is_composed(self.bench, done, self._wing.is_regularised), self.at_infinity
        )
        return self._tell(done, part, self.whole[part], stage, place, None, whole)

    # What is made of the gradients.

    def _optimise(self, whole: Exercised) -> None:
        update = self._update(whole)
        if update is None:
            return
        done = do(self.bench, update, self.names)
        seen = self._compare(done, "weights", "optimiser")
        if seen.kind is None:
            return
        kind = str(update.optimizer["class_name"])
        stage = feature_of(self.bench, update, self.names, self.model.dialect) or "optimiser"
        place = f"the update of {kind}" if stage == "optimiser" else f"the {stage} of {kind}"
        self._tell(done, "weights", seen, stage, place, None)

    def _update(self, whole: Exercised) -> Update | None:
        """The weights of the model, and the reference's gradients of them."""
        if not whole.replies:
            return None
        reference = choose_reference(list(whole.replies), self.bench.targets)
        found = self._update_of(whole.replies[reference].gradients)
        return found and found[1]

    def _update_of(self, gradients: Sequence[Leaf]) -> tuple[list[Leaf], Update] | None:
        """Of the weights that have a finite gradient, with these; None where there is none."""
        found = [
            (leaf, leaf.array)
            for leaf in gradients
            if leaf.layer and leaf.array is not None and np.isfinite(leaf.array).all()
        ]
        if not found:
            return None
        leaves = [leaf for leaf, _ in found]
        layers = [self.model.layer(leaf.layer) for leaf in leaves]
        pairs = list(zip(leaves, layers, strict=True))
        rows = [self._wing.looked_up(self.model, layer, self.inputs) for layer in layers]
        first = [
            array if which is None else array[which]
            for (_, array), which in zip(found, rows, strict=True)
        ]
        get = self.bench.pool.blobs.get
        count = self.trained.lesson.steps
        return leaves, Update(
            self.trained.lesson.optimizer,
            tuple(np.array(get(layer.weights[leaf.place].digest)) for leaf, layer in pairs),
            tuple(
                tuple((array * _FACTORS[n % 3]).astype(array.dtype) for array in first)
                for n in range(count)
            ),
            tuple(rows),
            tuple(
                self._wing.constraint_of(layer, layer.weights[leaf.place].name)
                for leaf, layer in pairs
            ),
        )

    def _drill(self, pulled: Exercised) -> None:
        lesson = self.trained.lesson
        done = do(self.bench, self.case.drill, self.names)
        seen = self._compare(done, "steps", "steps", whole=True)
        if seen.kind is not None:
            kind = str(lesson.optimizer["class_name"])
            place = f"{lesson.steps} steps of {kind}"
            whole = WholeModel(
                lambda: parts_with_gradients(self.bench, done, pulled, self._update_of)
            )
            self._tell(done, "steps", seen, "steps", place, None, whole)

    # What is told.

    def _tell(
        self,
        done: Exercised,
        part: str,
        seen: Observation,
        stage: str,
        place: str,
        layer: Layer | None,
        whole: WholeModel | None = None,
    ) -> Finding | None:
        """The finding of a stage; None where its cause is told already."""
        teller = StageTeller(self.bench, self.model.dialect, self.minimise)
        subject = layer.kind if layer else place.split()[-1]
        where = StagePlace(stage, place, subject, layer)
        finding = teller.finding(done, part, seen, where, whole)
        if any(known.fingerprint == finding.fingerprint for known in self.trained.findings):
            return None
        self.trained.findings.append(finding)
        return finding


def _loses_digits_of_updates(finding: Finding) -> bool:
    """What parts no model: its gradients agree."""
    assert finding.stage is not None
    return finding.triage == "precision" and finding.stage.part == "weights"


def _place(layer: Layer) -> str:
    return f"{layer.kind} layer {layer.name!r}"


def _fault(layer: Layer, seen: Observation) -> Fault:
    return Fault(layer, (), {}, seen.kind or "", seen.distance, seen.tolerance, seen.vote, {})
