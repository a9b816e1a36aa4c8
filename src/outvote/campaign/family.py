"""Who descends from whom. A mutant is stored as its parent, a rule and a seed, and made again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Set

from outvote.campaign.seeds import Seed, drawn_seed
from outvote.campaign.trial import Mutant
from outvote.core.model import Layer
from outvote.mutate.registry import Rule, mutate
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools
from outvote.store.rows import Birth

_KEPT = 256  # models in memory; others are made again when they are needed


class Lost(Exception):  # noqa: N818 - no error: the campaign goes on without this model
    """A model that is not in memory and could not be made again: Keras is another one now."""


class Family:
    """The models of a campaign: the seeds, and the mutants that are at work now.

    Of all others it remembers nothing: an order brings the births of its ancestors along.
    """

    def __init__(
        self,
        seeds: Mapping[int, Seed],
        rules: Mapping[str, Rule],
        tools: Tools,
    ) -> None:
        self.seeds = seeds
        self._births: dict[int, Birth] = {}  # of the ancestors in the last order
        self._rules = rules
        self._tools = tools
        self._kept: OrderedDict[int, Subject] = OrderedDict()

    def learn(self, births: Iterable[Birth]) -> None:
        """How the models came to be that those of an order descend from."""
        self._births = {birth.number: birth for birth in births}

    def propose(self, birth: Birth) -> Mutant | None:
        """A mutant born that way; None where the rule does not apply."""
        before = self.subject(birth.parent)
        after = self._made(birth, before)
        if after is None:
            return None
        root = self.root_of(birth.parent)
        changed = changed_layers(before, after)
        if after.inputs:
            own = drawn_seed(self._tools.blobs, after)
            return Mutant(birth, root, after, changed, own, counts=False)
        return Mutant(birth, root, after, changed, self.seeds[root])

    def subject(self, number: int) -> Subject:
        """The model of that number, made again from its ancestors if it is not in memory."""
        if number in self.seeds:
            return self.seeds[number].subject
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        birth = self._births[number]
        made = self._made(birth, self.subject(birth.parent))
        if made is None:
            raise Lost(f"mutant {number} cannot be made again by {birth.rule}")
        self.keep(number, made)
        return made

    def root_of(self, number: int) -> int:
        while number in self._births:
            number = self._births[number].parent
        return number

    def sweep(self, spared: Set[str]) -> None:
        """Delete the weights that no model in memory holds, but for those that are spared."""
        subjects = [*(seed.subject for seed in self.seeds.values()), *self._kept.values()]
        used = {
            weight.digest
            for subject in subjects
            for layer in subject.model.layers
            for weight in layer.weights
        }
        self._tools.blobs.keep_only(used | spared)

    def _made(self, birth: Birth, parent: Subject) -> Subject | None:
        rule = self._rules[birth.rule]
        return mutate(rule, parent, self._tools, (birth.seed, birth.number))

    def keep(self, number: int, subject: Subject) -> None:
        """A mutant that may breed, or another bred from."""
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
