"""Names of layers, each once."""

from __future__ import annotations


def named_once(taken: set[str], name: str, ending: str = "") -> str:
    """A name that is not taken yet, and is from now on: numbered where there are several."""
    label, count = f"{name}{ending}", 1
    while label in taken:
        count += 1
        label = f"{name}#{count}{ending}"
    taken.add(label)
    return label
