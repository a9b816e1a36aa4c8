"""Other ways to the same result, by which one target is held against itself: a file each.

A file has `NAME`; `TITLE`, what must hold, as a sentence; and `twin`, which is given a specimen on
a target and returns the other way, or None where there is none (`bench/relation.py`). Files here
need no dialect; a dialect adds its own by its part `relations`.
"""

from __future__ import annotations

from functools import cache

from outvote.bench.relation import Relation
from outvote.core.dialect import dialect
from outvote.core.plugins import modules_in


@cache
def all_relations(spoken: str) -> dict[str, Relation]:
    """Those that have a meaning for models of that dialect, by their names."""
    own = dialect(spoken).relations
    return {**relations_in(__name__), **(own.own_relations() if own is not None else {})}


def relations_in(package: str) -> dict[str, Relation]:
    """Every module of a package is a relation."""
    return {module.NAME: module for module in modules_in(package)}
