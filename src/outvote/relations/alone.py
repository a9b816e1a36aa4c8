"""An instance alone: what is computed of it depends on no other instance."""

from __future__ import annotations

from outvote.bench.relation import Asked, OtherWay

NAME = "alone"
TITLE = "an instance alone must give what it gives in a batch"


def twin(asked: Asked) -> OtherWay | None:
    """The last instance: a fault that gives all what the first one gives shows in it."""
    if not asked.has_instances:
        return None
    last = asked.specimen.count - 1
    one = asked.specimen.instances(slice(last, last + 1))
    return OtherWay(one, lambda plain, twin: (plain.instances([last]), twin))
