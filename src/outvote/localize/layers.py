"""Both localisations in one pass over the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from outvote.bench.steps import steps
from outvote.core.arrays import Array
from outvote.core.model import Model
from outvote.core.target import Target
from outvote.judge.compare import Settings, distance
from outvote.localize.introduction import Introduction, deviation, introduction
from outvote.localize.isolated import Fault, judge_step
from outvote.run.pool import Pool


@dataclass(frozen=True)
class Localization:
    """For one input: CRADLE's map of each target against the reference, and the faulty layers."""

    reference: str
    introductions: Mapping[str, Introduction]  # by target
    isolated: Mapping[str, Mapping[str, float]]  # target -> layer -> distance
    tolerances: Mapping[str, float]  # by layer
    shapes: Mapping[str, tuple[int, ...]]
    faults: tuple[Fault, ...]  # in topological order
    left_out: Mapping[str, str] = field(default_factory=dict)  # target -> why, and from where on
    # Like `isolated`, but from each target's own tensors: errors of earlier layers included.
    carried: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    ended: Mapping[str, str] = field(default_factory=dict)  # target -> what took no more of it
    back: bool = False  # of gradients: from the last layer to the first

    @property
    def compared(self) -> int:
        """How many layers at least two targets computed alone."""
        names = {name for layers in self.isolated.values() for name in layers}
        return len(names)


def localize(
    pool: Pool,
    model: Model,
    inputs: Sequence[Array],
    reference: str,
    targets: Mapping[str, Target],
    settings: Settings,
) -> Localization:
    """Step all targets through the model on one input and judge every layer twice."""
    others = [name for name in targets if name != reference]
    first_only = any(target.compiles_slowly for target in targets.values())
    delta: dict[str, dict[str, float]] = {name: {} for name in others}
    alone: dict[str, dict[str, float]] = {name: {} for name in others}
    carried: dict[str, dict[str, float]] = {name: {} for name in others}
    tolerances: dict[str, float] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    faults: list[Fault] = []
    left_out: dict[str, str] = {}
    ended: dict[str, str] = {}
    for step in steps(pool, model, inputs, reference, others):
        name = step.layer.name
        for target, run in {**step.failed, **step.lost}.items():
            left_out[target] = f"from {step.layer.kind} layer {name!r} on ({run.message})"
        if reference in left_out:
            break
        for target, why in step.ended.items():
            ended.setdefault(target, f"{step.layer.kind} layer {name!r} ({why})")
        for other in others:
            if other in step.own:
                delta[other][name] = deviation(step.own[reference], step.own[other])
                carried[other][name] = distance(step.own[reference], step.own[other])
        rounding, fault = judge_step(pool, step, targets, settings)
        tolerances[name] = rounding.tolerance
        for other, found in step.isolated.items():
            if other != reference:
                alone[other][name] = distance(step.isolated[reference], found)
        shapes[name] = step.own[reference].arrays[0].shape if step.own[reference].arrays else ()
        if fault is not None:
            known = _cause(fault) in map(_cause, faults)
            # Tensors are kept as evidence for the first of a kind alone: memory stays bounded.
            faults.append(replace(fault, given=(), outputs={}) if known else fault)
            if first_only:
                break
    introductions = {name: introduction(model, delta[name]) for name in others}
    return Localization(
        reference,
        introductions,
        alone,
        tolerances,
        shapes,
        tuple(faults),
        left_out,
        carried,
        ended,
    )


def _cause(fault: Fault) -> tuple[object, ...]:
    """What makes faults of several layers one."""
    triages = tuple(fault.deed_of(name).triage for name in fault.vote.outvoted)
    return fault.kind, fault.layer.kind, fault.vote.outvoted, triages
