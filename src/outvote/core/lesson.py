"""What training needs beside a model and its data."""

from __future__ import annotations

import json
from dataclasses import dataclass

from outvote.core.errors import UsageError
from outvote.core.train_protocol import Named


@dataclass(frozen=True)
class Lesson:
    """A loss, an optimiser, and how many steps are taken; no loss: one that fits the data."""

    optimizer: Named
    loss: Named | None = None
    steps: int = 3


def named(text: str, option: str) -> Named:
    """A loss or an optimiser as the user names it: a word, or JSON as Keras serialises it."""
    if not text.lstrip().startswith("{"):
        return {"class_name": text}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{option} is no JSON: {error}; received {text[:80]!r}") from error
    if not isinstance(found.get("class_name"), str):
        raise UsageError(f'{option} has no "class_name"; received {text[:80]!r}')
    return {"config": {}, **found}
