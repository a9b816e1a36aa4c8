"""Text from outside (names of layers, messages of frameworks) made harmless to look at."""

from __future__ import annotations

import unicodedata

_KEPT = "\n\t"


def printable(text: str) -> str:
    """The text with everything that commands a terminal, or hides, spelt out: `\\x1b`, `\\u202e`.

    Control sequences, marks that turn the direction of text round, and halves of characters that
    no encoding can write. Everything that leaves outvote for a screen goes through here.
    """
    if text.isprintable():
        return text
    return "".join(letter if _is_harmless(letter) else _spelt(letter) for letter in text)


def _is_harmless(letter: str) -> bool:
    return letter.isprintable() or letter in _KEPT or unicodedata.category(letter) == "Zs"


def _spelt(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def shortened(text: str, most: int = 300) -> str:
    """The text on one line; a long one is cut off."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."
