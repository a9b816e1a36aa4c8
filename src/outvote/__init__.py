"""outvote: finds where deep-learning implementations disagree, and says which one is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outvote.core.version import VERSION

if TYPE_CHECKING:
    from outvote.api import Exploration, Result, bisect, check, fuzz, nan
    from outvote.api import coverage as measure_coverage
    from outvote.api import explore as explore_models
    from outvote.api import localize as localize_causes
    from outvote.api import pollution as find_pollution
    from outvote.api import targets as list_targets

__version__ = VERSION
__all__ = [
    "Exploration",
    "Result",
    "__version__",
    "bisect",
    "check",
    "explore_models",
    "find_pollution",
    "fuzz",
    "list_targets",
    "localize_causes",
    "measure_coverage",
    "nan",
]
# Folders of this package have the names of these verbs; `outvote.api` has the verbs themselves.
_OTHERWISE = {
    "explore_models": "explore",
    "find_pollution": "pollution",
    "list_targets": "targets",
    "localize_causes": "localize",
    "measure_coverage": "coverage",
}


def __getattr__(name: str) -> Any:
    """Import the work only when it is asked for: `import outvote` stays instant."""
    if name in __all__:
        from outvote import api

        return getattr(api, _OTHERWISE.get(name, name))
    raise AttributeError(f"module 'outvote' has no attribute {name!r}")
