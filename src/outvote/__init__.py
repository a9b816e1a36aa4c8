"""outvote: finds where deep-learning implementations disagree, and says which one is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outvote.core.version import VERSION

if TYPE_CHECKING:
    from outvote.api import Result, check
    from outvote.explore.api import Exploration, explore_models, find_pollution, measure_coverage

__version__ = VERSION
__all__ = [
    "Exploration",
    "Result",
    "__version__",
    "check",
    "explore_models",
    "find_pollution",
    "measure_coverage",
]
_EXPLORING = ("Exploration", "explore_models", "find_pollution", "measure_coverage")


def __getattr__(name: str) -> Any:
    """Import the work only when it is asked for: `import outvote` stays instant."""
    if name in ("check", "Result"):
        from outvote import api

        return getattr(api, name)
    if name in _EXPLORING:
        from outvote.explore import api as exploring

        return getattr(exploring, name)
    raise AttributeError(f"module 'outvote' has no attribute {name!r}")
