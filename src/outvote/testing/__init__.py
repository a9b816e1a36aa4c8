"""outvote inside test-suites: `assert_consistent`, and the plug-in of pytest (docs/testing.md).

Nothing heavy is imported before a test asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outvote.testing.outvoted import InconsistentError, assert_consistent

__all__ = ["InconsistentError", "assert_consistent"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from outvote.testing import outvoted

        return getattr(outvoted, name)
    raise AttributeError(f"module 'outvote.testing' has no attribute {name!r}")
