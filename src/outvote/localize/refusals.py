"""Who is wrong where some targets give a result for a layer and others raise.

As a rule an error is no vote: two targets that raise may raise for different reasons, and what one
implementation computes shows that the layer can be computed. Two cases are decided otherwise:

- A result without elements, from tensors that have some, is a refusal that was not spoken. There
  the errors of the others are votes of one group.
- A batch of no instances is legal, because the batch of a model is free. Whoever gives the batch
  of no results is right, and whoever raises is wrong, however many they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from outvote.core.target import Outcome, Target
from outvote.judge.compare import Outputs
from outvote.judge.vote import Vote, vote
from outvote.localize.stepping import Step


def vote_on(
    step: Step, agreements: Iterable[tuple[str, str]], targets: Mapping[str, Target]
) -> Vote:
    """The vote on one layer; `agreements` are pairs of targets that gave the same result."""
    voters = {name: targets[name] for name in (*step.isolated, *step.failed)}
    refused = [name for name, run in step.failed.items() if run.outcome is Outcome.ERROR]
    pairs = list(agreements)
    if refused and _something_given(step) and all(map(_is_empty, step.isolated.values())):
        pairs += [(refused[0], other) for other in refused[1:]]
    voted = vote(voters, pairs, step.layer.kind)
    if refused and not voted.decided and _batch_of_none(step):
        return _accepted(voted, step)
    return voted


def _something_given(step: Step) -> bool:
    return all(array.size for array, _ in step.given)


def _is_empty(outputs: Outputs) -> bool:
    return bool(outputs.arrays) and not any(array.size for array in outputs.arrays)


def _batch_of_none(step: Step) -> bool:
    """Whether the batch is empty and nothing else: no tensor, given or computed, lacks an axis."""
    given = [array for array, _ in step.given]
    arrays = [*given, *(a for outputs in step.isolated.values() for a in outputs.arrays)]
    return bool(given) and all(
        a.ndim > 0 and a.shape[0] == 0 and 0 not in a.shape[1:] for a in arrays
    )


def _accepted(voted: Vote, step: Step) -> Vote:
    """The same groups, won by those who computed; undecided if these differ among themselves."""
    winners = [group for group in voted.groups if set(group) & set(step.isolated)]
    if len(winners) != 1:
        return voted
    told = " against ".join(", ".join(group) for group in voted.groups)
    reason = f"a batch of no instances is legal, so whoever refuses it is wrong: {told}"
    return replace(voted, majority=winners[0], reason=reason)
