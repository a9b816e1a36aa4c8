"""The strategies, found by their folder: each file with a NAME is one.

It also has `GROUPS`, of the rules that it uses, and `STRATEGY`, which is made of an `Experience`.
One with `AHEAD` may be asked for the next mutants before it is told what came of those under way.
"""

from __future__ import annotations

from typing import Any

from outvote import search
from outvote.core.errors import UsageError
from outvote.core.plugins import modules_in
from outvote.search.strategy import Experience, Strategy


def strategies() -> dict[str, Any]:
    """The file of every strategy, by the name users give."""
    modules = modules_in(search.__name__)
    return {module.NAME: module for module in modules if hasattr(module, "NAME")}


def find_strategy(name: str) -> Any:
    known = strategies()
    if name not in known:
        raise UsageError(f"there is no strategy {name!r}; choose from {', '.join(sorted(known))}")
    return known[name]


def asks_ahead(name: str) -> bool:
    """Whether it makes no odds to a strategy when it is told of a mutant."""
    return bool(getattr(find_strategy(name), "AHEAD", False))


def strategy(name: str, memory: Experience) -> Strategy:
    made: Strategy = find_strategy(name).STRATEGY(memory)
    return made
