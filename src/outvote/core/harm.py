"""Which findings are read first: the most harmful, in tables and reports alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# A proven bug before what nobody decides, and that before what is meant or explained.
_TRIAGES = ("bug", "unknown", "difference", "precision", "unsupported")
# Silent wrong numbers are worst: nobody notices (SYMPTOMS of causes.py stand in the same order).
_KINDS = ("inconsistency", "hang", "nan", "shape", "crash", "illegal", "performance")


def harm(triage: str, kind: str) -> int:
    """A place in the order: 0 is the most harmful; words that are new here come last."""
    return 10 * _place(triage, _TRIAGES) + _place(kind, _KINDS)


def most_harmful_first(findings: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Findings of a result in that order; of equals those that were met most often."""
    return sorted(findings, key=lambda f: (harm(f["triage"], f["kind"]), -(f.get("count") or 0)))


def _place(word: str, words: tuple[str, ...]) -> int:
    return words.index(word) if word in words else len(words)
