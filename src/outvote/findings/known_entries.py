"""Writes entries of `known.toml`, and leaves the rest of the file as its author wrote it."""

from __future__ import annotations

import json
import re
import tomllib

from outvote.core.errors import UsageError
from outvote.findings.known import Known

_HEAD = re.compile(r"^[ \t]*\[\[[ \t]*known[ \t]*\]\][ \t]*(#.*)?$", re.MULTILINE)


def with_entry(text: str, entry: Known) -> str:
    """The text with this entry, at the end; an older one of its fingerprint goes."""
    before = without_entry(text, entry.fingerprint) if entry.fingerprint in text else text
    lines = ["[[known]]", f"fingerprint = {_quoted(entry.fingerprint)}"]
    lines.append(f"reason = {_quoted(entry.reason)}")
    if entry.link is not None:
        lines.append(f"link = {_quoted(entry.link)}")
    if entry.until is not None:
        lines.append(f"until = {_quoted(str(entry.until))}")
    gap = "\n" if before.strip() else ""
    made = before.rstrip("\n") + "\n" * bool(before.strip()) + gap + "\n".join(lines) + "\n"
    tomllib.loads(made)
    return made


def without_entry(text: str, fingerprint: str) -> str:
    """The text without the entry of that fingerprint."""
    tables = tomllib.loads(text).get("known", [])
    heads = [found.start() for found in _HEAD.finditer(text)]
    kept = [table for table in tables if table.get("fingerprint") != fingerprint]
    parts = [text[a:b] for a, b in zip(heads, [*heads[1:], len(text)], strict=True)]
    rest = [part for part in parts if _fingerprint(part) != fingerprint]
    made = text[: heads[0]] + "".join(rest) if heads else text
    try:
        same = tomllib.loads(made).get("known", []) == kept
    except tomllib.TOMLDecodeError:
        same = False
    if not same:  # a text of several lines holds what looks like a head
        raise UsageError(f"the entry {fingerprint} cannot be taken out safely; edit known.toml")
    return made


def _fingerprint(part: str) -> str | None:
    try:
        (table,) = tomllib.loads(part)["known"]
    except (tomllib.TOMLDecodeError, KeyError, ValueError, TypeError):
        return None
    found = table.get("fingerprint")
    return found if isinstance(found, str) else None


def _quoted(text: str) -> str:
    """A basic string of TOML: JSON's, but for one letter that JSON lets stand."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
