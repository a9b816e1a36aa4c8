"""What a person sees when the workbench has ended."""

from __future__ import annotations

from typing import Any

from outvote.commands.serve.job import ServeJob
from outvote.commands.terminal import Screen


def show(result: dict[str, Any], job: ServeJob, screen: Screen) -> None:
    """That it has."""
    screen.say("outvote serve has ended")
