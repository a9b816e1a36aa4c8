"""The folder of environments: each made whole or not at all, once, whoever asks at a time."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from platformdirs import user_cache_path

from outvote.core.errors import UsageError
from outvote.targets.environments.plan import Environment

_FACTS = "environment.json"  # written last: a folder without it is not whole


def default_folder() -> Path:
    """`outvote/environments` in the user's cache folder."""
    return user_cache_path("outvote") / "environments"


@dataclass(frozen=True)
class EnvironmentEntry:
    """One row of `outvote targets --environments`."""

    key: str
    label: str
    kind: str  # overlay or environment
    megabytes: float
    seconds: float  # that it took to make
    yanked: str  # why its release was withdrawn; empty if it was not


class EnvironmentStore:
    """Environments under their keys."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()

    def find(self, environment: Environment) -> Path | None:
        """Where the environment stands, if it is whole and its interpreter still exists."""
        path = self.folder / environment.key
        if not (path / _FACTS).is_file():
            return None
        return path if environment.is_overlay or (path / "bin" / "python").exists() else None

    def get(self, environment: Environment, make: Callable[[Path], dict[str, Any]]) -> Path:
        """The environment's folder; `make` fills a new one and returns facts worth keeping."""
        found = self.find(environment)
        if found is not None:
            return found
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._only_one(environment.key):
            return self.find(environment) or self._made(environment, make)

    def facts(self, environment: Environment) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads((self.folder / environment.key / _FACTS).read_text())
        return facts

    def entries(self) -> list[EnvironmentEntry]:
        """Every whole environment, by key."""
        found = sorted(self.folder.glob(f"*/{_FACTS}"))
        return [
            EnvironmentEntry(path.parent.name, **json.loads(path.read_text())) for path in found
        ]

    def remove(self, key: str) -> float:
        """Delete one environment, or with `all` every one; returns the megabytes freed."""
        entries = {entry.key: entry for entry in self.entries()}
        chosen = list(entries) if key == "all" else [key]
        if key != "all" and key not in entries:
            raise UsageError(
                f"there is no environment {key!r}; `outvote targets --environments` lists them"
            )
        for name in chosen:
            with self._only_one(name):
                # The facts go first: what is left by an interruption is no environment.
                (self.folder / name / _FACTS).unlink(missing_ok=True)
                shutil.rmtree(self.folder / name)
        if key == "all":
            for path in self.folder.glob(".*.*"):
                if not _is_alive(int(path.suffix[1:])):
                    shutil.rmtree(path, ignore_errors=True)
        return sum(entries[name].megabytes for name in chosen)

    def _made(self, environment: Environment, make: Callable[[Path], dict[str, Any]]) -> Path:
        self._remove_leftovers(environment.key)
        final = self.folder / environment.key
        shutil.rmtree(final, ignore_errors=True)
        half = self.folder / f".{environment.key}.{os.getpid()}"
        began = time.monotonic()
        try:
            facts = {
                "label": environment.label,
                "kind": "overlay" if environment.is_overlay else "environment",
                **make(half),
                "megabytes": round(_bytes_of(half) / 1e6, 1),
                "seconds": round(time.monotonic() - began, 1),
            }
            (half / _FACTS).write_text(json.dumps(facts, indent=1))
            half.rename(final)
        except BaseException:
            shutil.rmtree(half, ignore_errors=True)
            raise
        return final

    def _remove_leftovers(self, key: str) -> None:
        """Take away what builders of this key left that were killed; we hold their lock."""
        for path in self.folder.glob(f".{key}.*"):
            shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def _only_one(self, key: str) -> Iterator[None]:
        """One builder of a key at a time; the system lets go of the lock when a builder dies."""
        with FileLock(self.folder / f"{key}.lock"):
            yield


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _bytes_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))
