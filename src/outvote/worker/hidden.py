"""Libraries that another one looks for while it is imported, though nobody here needs them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


@contextmanager
def hidden(names: Iterable[str]) -> Iterator[None]:
    """Imports of these fail in the block, as where they are not installed; then they work again."""
    absent = {name: None for name in names if name not in sys.modules}
    sys.modules.update(absent)  # type: ignore[arg-type]  # None is how Python is told
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
