"""Markdown: text, code, fences and tables in which nothing from outside becomes markup.

All writers of Markdown use these: reports, and the text of an issue. What is Markdown already is a
`Markdown`; every other text is escaped where it is put in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from outvote.core.text import printable

# An underscore inside a word is only an underscore, and names of layers are full of them.
_MARKUP = re.compile(r"([\\`*\[\]<>|#&~$]|(?<!\w)_|_(?!\w))")
# What begins a list or underlines a heading, at the start of a line.
_FIRST = re.compile(r"^(\d*)([-+=]|[.)])(?=[-\s]|$)")


class Markdown(str):
    """Text that is Markdown already, and is put in as it is."""


def escape(text: Any) -> Markdown:
    """Text on one line, as it is: none of it becomes markup."""
    if isinstance(text, Markdown):
        return text
    return Markdown(_FIRST.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", _flat(text))))


def code(text: Any) -> Markdown:
    """Text as inline code. A backtick cannot be escaped there, so it becomes a quote."""
    return Markdown("`" + _flat(text).replace("`", "'").replace("|", "¦") + "`")


def bold(text: Any) -> Markdown:
    return Markdown(f"**{escape(text)}**")


def marked(form: str, *parts: Any) -> Markdown:
    """Markdown with a text at each `{}`."""
    return Markdown(form.format(*map(escape, parts)))


def fence(text: str, language: str = "") -> list[str]:
    """The lines of a block of code; its fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    bars = "`" * max(3, longest + 1)
    return [f"{bars}{language}", printable(text).rstrip(), bars]


def table(headings: Sequence[Any], rows: Iterable[Sequence[Any]]) -> list[str]:
    """The lines of a table, and an empty one."""
    told = [_row(row) for row in rows]
    if not told:
        return ["None.", ""]
    return [_row(headings), _row([Markdown("---")] * len(headings)), *told, ""]


def section(title: str, lines: Iterable[str]) -> str:
    """A heading, and what stands below it."""
    return "\n".join([f"## {escape(title)}", "", *lines]).rstrip()


def targets_section(targets: Sequence[Mapping[str, Any]]) -> str:
    """What the targets of a result are; commands that know more of them say it themselves."""
    rows = [
        (code(t["name"]), ", ".join(f"{k} {v}" for k, v in t["versions"].items()), t["platform"])
        for t in targets
    ]
    return section("Targets", table(("target", "versions", "platform"), rows)) if rows else ""


def _row(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(escape(cell) for cell in cells) + " |"


def _flat(text: Any) -> str:
    return printable(" ".join(str(text).split()))
