"""outvote: finds where deep-learning implementations disagree, and says which one is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__"]

if TYPE_CHECKING:
    pass
