"""One target held against itself: what another way to the same result leads to.

A relation says which other way there is for a specimen, and which results must be equal then. What
rounding explains is measured on both ways, as it is between targets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from outvote.bench.bench import Bench
from outvote.bench.exact import reference_of
from outvote.bench.noise import Seed, asking, measured
from outvote.core.dialect import dialect
from outvote.core.outputs import Outputs
from outvote.core.specimen import Specimen
from outvote.core.target import Outcome, Run, Target
from outvote.judge.observation import Observation, observed
from outvote.judge.rounding import Rounding, model_rounding
from outvote.judge.tolerance import ELEMENT, layer_tolerance

Sides = Callable[[Outputs, Outputs], tuple[Outputs, Outputs] | None]


def _both(plain: Outputs, twin: Outputs) -> tuple[Outputs, Outputs]:
    return plain, twin


@dataclass(frozen=True)
class OtherWay:
    """The other way. `sides` are the results that must be equal: what is expected, what it gives.

    They are made of what the specimen gives as it is, and of what it gives this way; None where
    that says nothing.
    """

    specimen: Specimen
    sides: Sides = _both
    target: str = ""  # who runs it, where it is another one
    exact: bool = False  # in float64
    remade: bool = False  # by the library under test: it may be what is wrong


@dataclass(frozen=True)
class Asked:
    """A specimen on one target, and what it gives there."""

    bench: Bench
    name: str
    specimen: Specimen
    plain: Outputs

    @property
    def target(self) -> Target:
        return self.bench.pool.targets[self.name]

    @property
    def has_instances(self) -> bool:
        """Whether there are several instances, and what is given for each is its own."""
        model = self.specimen.model
        own = dialect(model.dialect).relations
        if own is not None and any(map(own.couples_instances, model.layers)):
            return False
        count = self.specimen.count
        read = zip(self.specimen.inputs, self.specimen.axes, strict=True)
        sizes = {array.shape[axis] for array, axis in read if axis is not None}
        if None in self.plain.axes:
            return False
        return count > 1 and {*sizes, *(len(rows) for rows in self.plain.rows)} == {count}


class Relation(Protocol):
    """What a file in `relations` offers."""

    NAME: str
    TITLE: str  # what must hold, as a sentence: docs/fuzz.md has it

    def twin(self, asked: Asked) -> OtherWay | None:
        """The other way; None where there is none for this specimen on this target."""
        ...


@dataclass(frozen=True)
class Answer:
    """What came of asking; it holds where nothing was seen that is of any kind."""

    twin: OtherWay
    seen: Observation
    side: str  # the name of the other way among what was seen

    @property
    def holds(self) -> bool:
        return self.seen.kind is None


def plain_run(bench: Bench, name: str, specimen: Specimen) -> Asked | None:
    """The specimen as it is; None where the target does not run it."""
    run = bench.run(specimen, [name])[name]
    return Asked(bench, name, specimen, run.reply.outputs) if run.ok else None


def ask(asked: Asked, relation: Relation) -> Answer | None:
    """Whether a relation holds; None where it has no meaning, or the other way is a gap."""
    twin = relation.twin(asked)
    if twin is None:
        return None
    who = twin.target or asked.name
    run = asked.bench.run(twin.specimen, [who], exact=twin.exact)[who]
    if run.outcome is Outcome.UNSUPPORTED:
        return None
    answer = _judged(asked, twin, f"{asked.name} ({relation.NAME})", run)
    return answer if answer is None or answer.holds or _is_meant(asked, twin) else None


def _judged(asked: Asked, twin: OtherWay, side: str, run: Run) -> Answer | None:
    specimen = asked.specimen
    targets = {
        asked.name: asked.target,
        side: replace(asked.target, name=side, original=asked.name),
    }
    outputs, failures = {asked.name: asked.plain}, {side: run}
    rounding = _rounding(asked)
    if run.ok:
        both = twin.sides(asked.plain, run.reply.outputs)
        if both is None:
            return None
        outputs, failures = dict(zip((asked.name, side), both, strict=True)), {}
        if not rounding.explains(*both):
            rounding = measured(rounding, outputs, _moving(asked, twin, side), outputs)
    kind = specimen.last.kind
    return Answer(twin, observed(specimen.inputs, outputs, failures, rounding, targets, kind), side)


def _rounding(asked: Asked) -> Rounding:
    """What needs no explanation: of a layer by its terms, of a model by its type."""
    bench, specimen, plain = asked.bench, asked.specimen, {asked.name: asked.plain}
    if len(specimen.model.layers) == 1:
        return bench.rounding(specimen, plain)
    return model_rounding(plain.values(), bench.settings)


def _moving(
    asked: Asked, twin: OtherWay, side: str
) -> Callable[[Sequence[Seed]], list[dict[str, Outputs]]]:
    """Both ways, with every tensor moved by a last place."""
    pool, who = asked.bench.pool, twin.target or asked.name
    plain = asking(pool, asked.specimen.model, asked.specimen.inputs, [asked.name])
    other = asking(pool, twin.specimen.model, twin.specimen.inputs, [who], twin.exact)

    def ask(seeds: Sequence[Seed]) -> list[dict[str, Outputs]]:
        pairs = zip(plain(seeds), other(seeds), strict=True)
        sides = [twin.sides(a[asked.name], b[who]) for a, b in pairs if a and b]
        return [dict(zip((asked.name, side), both, strict=True)) for both in sides if both]

    return ask


def _is_meant(asked: Asked, twin: OtherWay) -> bool:
    """Whether exact results obey the relation, as far as there are any.

    What a layer is defined to do may break one, as a softmax over the batch does.
    """
    if twin.remade:
        return True
    blobs = asked.bench.pool.blobs
    plain = reference_of(asked.specimen, blobs)
    other = reference_of(twin.specimen, blobs)
    if plain is None or other is None:
        return True
    both = twin.sides(plain, other)
    if both is None:
        return True
    expected, given = both
    limit = layer_tolerance("float32")
    exact = Rounding(((limit, ELEMENT),) * len(expected.arrays))
    return exact.explains(expected, replace(given, dtypes=expected.dtypes))
