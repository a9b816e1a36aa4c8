"""Who is wrong where some targets give a result for a layer and others raise.

As a rule an error is no vote: two targets that raise may raise for different reasons, and what one
implementation computes shows that the layer can be computed. Two cases are decided otherwise:

- A result without elements, from tensors that have some, is a refusal that was not spoken. There
  the errors of the others are votes of one group.
- A batch of no instances is legal, because the batch of a model is free. Whoever gives the batch
  of no results is right, and whoever raises is wrong, however many they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from outvote.core.arrays import Array
from outvote.core.outputs import Outputs
from outvote.core.target import Outcome, Run, Target
from outvote.judge.vote import Vote, vote


@dataclass(frozen=True)
class Answers:
    """What targets answered to the same tensors: results, and failures."""

    given: Sequence[Array]
    results: Mapping[str, Outputs]
    failures: Mapping[str, Run]

    @property
    def refused(self) -> list[str]:
        return [name for name, run in self.failures.items() if run.outcome is Outcome.ERROR]

    @property
    def something_given(self) -> bool:
        return all(array.size for array in self.given)

    @property
    def nothing_came(self) -> bool:
        """Whether all results lack elements."""
        return all(
            found.arrays and not any(array.size for array in found.arrays)
            for found in self.results.values()
        )

    @property
    def is_batch_of_none(self) -> bool:
        """Whether the batch is empty and nothing else: no tensor, given or computed."""
        arrays = [*self.given, *(a for found in self.results.values() for a in found.arrays)]
        return bool(self.given) and all(
            a.ndim > 0 and a.shape[0] == 0 and 0 not in a.shape[1:] for a in arrays
        )


def vote_on(
    answers: Answers,
    agreements: Iterable[tuple[str, str]],
    targets: Mapping[str, Target],
    layer_kind: str | None,
) -> Vote:
    """The vote on one layer; `agreements` are pairs of targets that gave the same result."""
    voters = {name: targets[name] for name in (*answers.results, *answers.failures)}
    refused = answers.refused
    pairs = list(agreements)
    if refused and answers.something_given and answers.nothing_came:
        pairs += [(refused[0], other) for other in refused[1:]]
    voted = vote(voters, pairs, layer_kind)
    if refused and not voted.decided and answers.is_batch_of_none:
        return _accepted(voted, answers)
    return voted


def _accepted(voted: Vote, answers: Answers) -> Vote:
    """The same groups, won by those who computed; undecided if these differ among themselves."""
    winners = [group for group in voted.groups if set(group) & set(answers.results)]
    if len(winners) != 1:
        return voted
    told = " against ".join(", ".join(group) for group in voted.groups)
    reason = f"a batch of no instances is legal, so whoever refuses it is wrong: {told}"
    return replace(voted, majority=winners[0], reason=reason)
