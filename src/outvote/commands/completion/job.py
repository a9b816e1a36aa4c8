"""What `completion` is asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class CommandWords:
    """A command in a few words, its options, and for some of them the values that there are."""

    text: str
    options: Mapping[str, str]  # with what each is for
    choices: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class CompletionJob:
    """The script for a shell, for these commands."""

    shell: str
    commands: Mapping[str, CommandWords]
