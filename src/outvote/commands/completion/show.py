"""What a shell reads: the script, and nothing else."""

from __future__ import annotations

from typing import Any

from outvote.commands.completion.job import CompletionJob
from outvote.commands.terminal import Screen


def show(result: dict[str, Any], job: CompletionJob, screen: Screen) -> None:
    """The script as it is."""
    screen.say(result["text"].rstrip("\n"))
