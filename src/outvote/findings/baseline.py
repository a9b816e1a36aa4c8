"""Another run to be compared with: what it had found does not fail this one (docs/gate.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from outvote.core.errors import UsageError

_FILE = "result.json"


@dataclass(frozen=True)
class Baseline:
    """The fingerprints of an earlier run's findings, and where they were read."""

    path: Path | None = None
    fingerprints: frozenset[str] = frozenset()


NO_BASELINE = Baseline()


def load_baseline(path: Path | None) -> Baseline:
    """The findings of a `result.json`, or of the one in a folder."""
    if path is None:
        return NO_BASELINE
    file = path / _FILE if path.is_dir() else path
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        found = [finding["fingerprint"] for finding in data["findings"]]
    except FileNotFoundError:
        raise UsageError(
            f"--baseline {path}: there is no {file}; name the folder of an earlier run, or its "
            f"{_FILE}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"--baseline {path}: {file} is no result of outvote: {error}") from error
    if not all(isinstance(item, str) for item in found):
        raise UsageError(f"--baseline {path}: {file} is no result of outvote")
    return Baseline(path, frozenset(found))
