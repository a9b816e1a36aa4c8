"""What `completion` is asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class CommandWords:
    """A command in a few words, what may follow it, its options, and for some the values."""

    text: str
    words: tuple[str, ...]  # that may stand behind it; none: files
    options: Mapping[str, str]  # with what each is for
    choices: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class CompletionJob:
    """The script for a shell, for these commands."""

    shell: str
    commands: Mapping[str, CommandWords]
