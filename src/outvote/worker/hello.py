"""What a worker says of itself and of where it runs."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from outvote.core.protocol import Hello


def hello(versions: Mapping[str, str], precision: Mapping[str, Any]) -> Hello:
    return Hello(
        versions=dict(versions),
        precision=dict(precision),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
    )


def installed_version(package: str) -> str:
    """That of a library, which may be there under the name of its build without a GPU."""
    for name in (package, f"{package}-cpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "unknown"
