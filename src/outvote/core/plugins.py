"""The folder is the registry: what is added to one is found by its place."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def modules_in(package: str) -> list[Any]:
    """Every module of a folder, in the order of their names."""
    folder = importlib.import_module(package)
    return [
        importlib.import_module(f"{package}.{item.name}")
        for item in pkgutil.iter_modules(folder.__path__)
    ]
