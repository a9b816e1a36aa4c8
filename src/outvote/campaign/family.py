"""Who descends from whom. A mutant is stored as its parent, a rule and a seed, and made again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from outvote.campaign.probes.illegal import Attempt
from outvote.campaign.seeds import Seed
from outvote.core.model import Layer
from outvote.mutate.registry import Rule, mutate
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools
from outvote.store.rows import Birth

_KEPT = 256  # models in memory; others are made again when they are needed


@dataclass(frozen=True)
class Mutant:
    """A new model, and which of its layers its parent does not have."""

    birth: Birth
    root: int
    subject: Subject
    changed: tuple[str, ...]
    seed: Seed | None = None  # inputs of its own, where they were searched
    attempt: Attempt | None = None  # an illegal value, tried on a layer of the model
    cost: int = 1  # requests to every target until it was there, and its own run


class Lost(Exception):  # noqa: N818 - no error: the campaign goes on without this model
    """A model that is not in memory and could not be made again: Keras is another one now."""


class Family:
    """All models of a campaign: the seeds, and every mutant by the way it was made."""

    def __init__(
        self, roots: Mapping[int, Subject], rules: Mapping[str, Rule], tools: Tools, seed: int
    ) -> None:
        self.roots = dict(roots)
        self.births: dict[int, Birth] = {}
        self._rules = rules
        self._tools = tools
        self._seed = seed
        self._kept: OrderedDict[int, Subject] = OrderedDict()

    def propose(self, number: int, parent: int, rule: str) -> Mutant | None:
        """A mutant of that number; None where the rule does not apply."""
        birth = Birth(number, parent, rule, self._seed)
        before = self.subject(parent)
        after = self._made(birth, before)
        if after is None:
            return None
        return Mutant(birth, self.root_of(parent), after, changed_layers(before, after))

    def add(self, mutant: Mutant) -> None:
        self.births[mutant.birth.number] = mutant.birth
        self._keep(mutant.birth.number, mutant.subject)

    def subject(self, number: int) -> Subject:
        """The model of that number, made again from its ancestors if it is not in memory."""
        if number in self.roots:
            return self.roots[number]
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        birth = self.births[number]
        made = self._made(birth, self.subject(birth.parent))
        if made is None:
            raise Lost(f"mutant {number} cannot be made again by {birth.rule}")
        self._keep(number, made)
        return made

    def root_of(self, number: int) -> int:
        while number in self.births:
            number = self.births[number].parent
        return number

    def lineage(self, number: int) -> list[Birth]:
        """The mutations from the seed to this model, first one first."""
        chain = []
        while number in self.births:
            chain.append(self.births[number])
            number = self.births[number].parent
        return chain[::-1]

    def sweep(self, also: Iterable[Subject] = ()) -> None:
        """Delete the weights that no model in memory holds."""
        used = {
            weight.digest
            for subject in (*self.roots.values(), *self._kept.values(), *also)
            for layer in subject.model.layers
            for weight in layer.weights
        }
        self._tools.blobs.keep_only(used)

    def _made(self, birth: Birth, parent: Subject) -> Subject | None:
        rule = self._rules[birth.rule]
        return mutate(rule, parent, self._tools, (birth.seed, birth.number))

    def _keep(self, number: int, subject: Subject) -> None:
        self._kept[number] = subject
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)


def changed_layers(before: Subject, after: Subject) -> tuple[str, ...]:
    """Layers that are new or hold another object than before."""
    known: dict[str, Layer] = {layer.name: layer for layer in before.model.layers}
    return tuple(
        layer.name
        for layer in after.model.layers
        if layer.name not in known
        or (
            layer is not known[layer.name]
            and layer.object_digest != known[layer.name].object_digest
        )
    )
