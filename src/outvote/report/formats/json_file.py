"""`result.json`: the result as it is, for programs. The other formats are made from the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = "result.json"


def render(result: dict[str, Any], folder: Path) -> str:
    """The JSON as text."""
    return json.dumps(result, allow_nan=False, indent=1) + "\n"
