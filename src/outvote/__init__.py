"""outvote: finds where deep-learning implementations disagree, and says which one is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outvote.core.version import VERSION

if TYPE_CHECKING:
    from outvote.api import (
        Exploration,
        check,
        explore_models,
        find_pollution,
        measure_coverage,
    )
    from outvote.core.result import Result

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


def __getattr__(name: str) -> Any:
    """Import the work only when it is asked for: `import outvote` stays instant."""
    if name in __all__:
        from outvote import api

        return getattr(api, name)
    raise AttributeError(f"module 'outvote' has no attribute {name!r}")
