"""The strategies, found by their folder: each file with a NAME is one.

It also has `GROUPS`, of the rules that it uses, and `STRATEGY`, which is made of an `Experience`.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from outvote import search
from outvote.core.errors import UsageError
from outvote.search.strategy import Experience, Strategy


def strategies() -> dict[str, Any]:
    """The file of every strategy, by the name users give."""
    found = {}
    for item in pkgutil.iter_modules(search.__path__):
        module: Any = importlib.import_module(f"{search.__name__}.{item.name}")
        if hasattr(module, "NAME"):
            found[module.NAME] = module
    return found


def find_strategy(name: str) -> Any:
    known = strategies()
    if name not in known:
        raise UsageError(f"there is no strategy {name!r}; choose from {', '.join(sorted(known))}")
    return known[name]


def strategy(name: str, memory: Experience) -> Strategy:
    made: Strategy = find_strategy(name).STRATEGY(memory)
    return made
