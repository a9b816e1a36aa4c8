"""Another order of the batch: results come in that order, and are the same."""

from __future__ import annotations

from outvote.bench.relation import Asked, OtherWay

NAME = "order"
TITLE = "a batch in another order must give the same in that order"


def twin(asked: Asked) -> OtherWay | None:
    """Backwards: every instance but the middle one stands elsewhere."""
    if not asked.has_instances:
        return None
    turned = list(range(asked.specimen.count))[::-1]
    specimen = asked.specimen.instances(slice(None, None, -1))
    return OtherWay(specimen, lambda plain, twin: (plain.instances(turned), twin))
