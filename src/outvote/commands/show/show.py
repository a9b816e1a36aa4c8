"""What a person sees of one finding."""

from __future__ import annotations

from typing import Any

from rich.markdown import Markdown

from outvote.commands.show.job import ShowJob
from outvote.commands.terminal import Screen


def show(result: dict[str, Any], job: ShowJob, screen: Screen) -> None:
    """The text, and how to run its proof."""
    screen.print(Markdown(result["text"]), soft_wrap=False)
    if result["repro"]:
        screen.say(f"repro: python {result['repro']}")
