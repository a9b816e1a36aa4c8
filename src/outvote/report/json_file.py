"""`result.json`: the result as it is, for programs. The other formats are made from the same."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from outvote.core.files import write_atomically


def write(result: dict[str, Any], folder: Path) -> Path:
    """Write `result.json` into the folder."""
    text = json.dumps(plain(result), allow_nan=False, indent=1)
    return write_atomically(folder / "result.json", text + "\n")


def plain(value: Any) -> Any:
    """The value with only JSON's types in it: NaN and infinities become null."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Integral):  # NumPy's integers too
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    raise TypeError(
        f"A result holds only numbers, strings, lists and dicts. Received: {type(value).__name__}"
    )
