"""Files that are dropped on a page: names made plain, contents looked at as `check` does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from outvote.config import Config
from outvote.core.case import load_data
from outvote.core.dialect import Dialect, dialect_of, dialects, inspect
from outvote.core.errors import UsageError
from outvote.targets.choose import known_targets, missing_packages

_WEIGHTS = ".weights.h5"


def plain_name(name: str) -> str:
    """The name without folders, and without letters that a shell or a browser reads otherwise."""
    found = re.sub(r"[^A-Za-z0-9._-]+", "-", name.replace("\\", "/").rpartition("/")[2])
    found = found.lstrip(".-")[-100:].lstrip(".-")
    if not found:
        raise UsageError(f"a file needs a name; received {name!r}")
    return found


def role_of(name: str) -> str:
    """What a file is for, by its ending: model, data or weights."""
    if name.endswith(".npz"):
        return "data"
    if name.endswith(_WEIGHTS):
        return "weights"
    if Path(name).suffix not in endings():
        raise UsageError(f"{name} is neither a model ({' '.join(endings())}) nor inputs (.npz)")
    return "model"


def endings() -> list[str]:
    """Of all model files that can be read."""
    return sorted({ending for wing in dialects() for ending in wing.files.SUFFIXES})


def looked_at(path: Path, role: str, config: Config | None) -> dict[str, Any]:
    """Refuse what a check would refuse; say what it is, and which targets there are for a model."""
    if role == "data":
        arrays = load_data(path)
        return {"told": ", ".join(f"{name} {array.shape}" for name, array in arrays.items())}
    told = f"{path.stat().st_size:,} bytes"
    if role == "weights":
        return {"told": told}
    # An architecture is looked at with its weights, which come after it.
    wing = dialect_of(path) if path.suffix == ".json" else inspect(path)
    return {"told": f"{wing.name}, {told}", "targets": targets_for(wing, config)}


def targets_for(wing: Dialect, config: Config | None) -> list[dict[str, Any]]:
    """Those that can run it here; chosen are those of a plain `outvote check`, or of --config."""
    known = known_targets(config or Config(), wing)
    own = config.targets if config else {}
    here = [n for n, t in known.items() if not missing_packages(t) and not t.original]
    offered = [name for name in here if name in own or known[name].worker != "fake"]
    chosen = own or wing.targets.DEFAULT
    return [{"name": name, "chosen": name in chosen} for name in offered]
