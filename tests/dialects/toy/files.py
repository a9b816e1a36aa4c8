"""Toy models are JSON: inputs, nodes, outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from outvote.core.errors import UsageError

SUFFIXES = (".toy",)
CASE_FILE = "model.toy"
IN_PARTS = NAMED_DIMS = False


def inspect(path: Path, weights: Path | None) -> None:
    """Raise UsageError for what is no toy."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is not a toy: {error}") from error
    if not isinstance(data, dict) or not {"inputs", "nodes", "outputs"} <= data.keys():
        raise UsageError(f"{path} is not a toy: it needs inputs, nodes and outputs")


def saved(live: Any, path: Path) -> Path | None:
    """Toys do not live in memory."""
    return None
