"""Reads `known.toml`: which findings are known, why, and until which release (docs/gate.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outvote.core.errors import UsageError
from outvote.core.given import read_toml

FILE_NAME = "known.toml"
_KEYS = ("fingerprint", "reason", "link", "until")
_UNTIL = re.compile(r"(?P<package>[A-Za-z0-9][A-Za-z0-9._-]*) +(?P<version>\d+(\.\d+)*\S*)")


@dataclass(frozen=True)
class Until:
    """The release from which on an entry no longer silences."""

    package: str
    version: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


@dataclass(frozen=True)
class Known:
    """One [[known]] table: a finding that shall not fail the run, and why."""

    fingerprint: str
    reason: str
    link: str | None = None
    until: Until | None = None


@dataclass(frozen=True)
class KnownFile:
    """All entries, and the file they come from; none of both where there is no file."""

    path: Path | None = None
    entries: tuple[Known, ...] = ()


NOTHING_KNOWN = KnownFile()


def load_known(path: Path | None, folder: Path) -> KnownFile:
    """The named file, or `known.toml` in the folder of `outvote.toml` if there is one."""
    if path is None:
        path = folder / FILE_NAME
        if not path.exists():
            return NOTHING_KNOWN
    data = read_toml(path, f"file {path} given with --known")
    tables = data.pop("known", [])
    if data:
        raise UsageError(f"{path} has the unknown key {min(data)!r}; entries are [[known]] tables")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: entries are tables, each under a line [[known]]")
    return KnownFile(path, _without_doubles(path, [entry_of(path, table) for table in tables]))


def entry_of(path: Path, table: Mapping[str, Any]) -> Known:
    """An entry as the file holds it, or is going to."""
    for key, value in table.items():
        if key not in _KEYS:
            raise UsageError(f"{path} has the unknown key {key!r}; known are {', '.join(_KEYS)}")
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{path}: {key} is a text that is not empty; received {value!r}")
    fingerprint = table.get("fingerprint")
    if fingerprint is None or not re.fullmatch("[0-9a-f]{12}", fingerprint):
        raise UsageError(
            f"{path}: a fingerprint is the 12 digits that a report shows, such as 8f216f87d085; "
            f"received {fingerprint!r}"
        )
    if "reason" not in table:
        raise UsageError(f"{path}: {fingerprint} has no reason; say why it may pass")
    link = table.get("link")
    if link is not None and not link.startswith(("https://", "http://")):
        raise UsageError(f"{path}: a link begins with https://; received {link!r}")
    return Known(fingerprint, table["reason"], link, _until(path, table.get("until")))


def known_of(data: Mapping[str, Any]) -> Known:
    """An entry that was read before, from plain data with its `until` as text."""
    found = _UNTIL.fullmatch(data["until"] or "")
    until = Until(found["package"], found["version"]) if found else None
    return Known(data["fingerprint"], data["reason"], data["link"], until)


def _until(path: Path, text: str | None) -> Until | None:
    if text is None:
        return None
    found = _UNTIL.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f'{path}: until is a package and a version, such as "keras 3.16.0"; received {text!r}'
        )
    return Until(found["package"], found["version"])


def _without_doubles(path: Path, entries: list[Known]) -> tuple[Known, ...]:
    seen: set[str] = set()
    for entry in entries:
        if entry.fingerprint in seen:
            raise UsageError(f"{path} has {entry.fingerprint} twice; delete one of the entries")
        seen.add(entry.fingerprint)
    return tuple(entries)
