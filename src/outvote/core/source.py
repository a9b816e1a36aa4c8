"""Python source made of untrusted text: whatever a model is called stays text and runs nothing."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_MARK = re.compile(r"@([A-Z]+)@")


def filled(template: Path, values: Mapping[str, str]) -> str:
    """The template with its marks replaced, in one pass: a mark inside a value stays as it is."""
    return _MARK.sub(lambda mark: values[mark[1]], template.read_text(encoding="utf-8"))


def one_line(text: str) -> str:
    """Text that can stand in a docstring or a comment: no quotes, escapes or invisible signs."""
    plain = " ".join(text.replace("\\", "/").replace('"', "'").split())
    return "".join(sign if sign.isprintable() else "�" for sign in plain)


def literal(value: Any) -> str:
    """Plain data as Python; what JSON calls NaN and Infinity has no name there."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' * (len(value) == 1)})"
    if isinstance(value, float) and repr(value) in ("nan", "inf", "-inf"):
        return f'float("{value!r}")'
    return repr(value)


def is_name(text: str) -> bool:
    """Whether the text can be written as a name: of a parameter, of a class.

    Python reads names in one normal form: what has another would be another name.
    """
    normal = unicodedata.normalize("NFKC", text) == text
    return normal and text.isidentifier() and not keyword.iskeyword(text)


def keywords(given: Mapping[str, str]) -> list[str]:
    """Source of arguments by name; what is no name is passed as `**{"what": ...}`."""
    plain = [f"{key}={text}" for key, text in given.items() if is_name(key)]
    odd = ", ".join(f"{key!r}: {text}" for key, text in given.items() if not is_name(key))
    return [*plain, f"**{{{odd}}}"] if odd else plain
