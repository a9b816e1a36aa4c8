"""Layers made anew of their own configurations, with the same weights."""

from __future__ import annotations

from outvote.bench.relation import Asked, OtherWay

NAME = "config"
TITLE = "a layer made of its own configuration must give the same"


def twin(asked: Asked) -> OtherWay | None:
    """What the target's own library says that its layers are."""
    if not asked.target.can("make"):
        return None
    rebuilt = asked.bench.rebuilt(asked.specimen, asked.name)
    return None if rebuilt is None or rebuilt is asked.specimen else OtherWay(rebuilt, remade=True)
