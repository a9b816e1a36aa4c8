"""Results in a type that a target only feigns: it computed them in a narrower one.

They are no wrong results, and they are no witnesses against others: who gave them is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from outvote.core.protocol import Ran
from outvote.core.target import Outcome, Run, Target


def without_feigned(run: Run[Ran], targets: Mapping[str, Target]) -> Run[Ran]:
    """The run as it is, or a gap where its outputs are of a type that the target feigns."""
    if not run.ok or not targets[run.target].does_feign(run.reply.outputs.dtypes):
        return run
    types = " and ".join(targets[run.target].feigns)
    message = f"computes {types} in narrower numbers: what it gives says nothing"
    return Run(run.target, Outcome.UNSUPPORTED, seconds=run.seconds, message=message)
