"""What a person sees of `outvote pollution` at the end."""

from __future__ import annotations

from typing import Any

from outvote.commands.terminal import Screen
from outvote.explore.job import ExploreJob

_WORDS = {
    "consistent": "NOTHING FOUND",
    "inconsistent": "SUSPECTS FOUND",
    "interrupted": "STOPPED EARLY",
}


def show(result: dict[str, Any], job: ExploreJob, screen: Screen) -> None:
    """The suspects that are likest to the evidence, and where the report is."""
    evidence = result["evidence"]
    if evidence:
        screen.say(
            f"on average {evidence['moved']:.0%} of confidence has moved from {evidence['true']} "
            f"to {evidence['false']}; {evidence['inputs']} inputs split the models that way"
        )
    if result["suspects"]:
        screen.say(f"likest samples: {', '.join(str(i) for i in result['suspects'][:10])}")
    screen.verdict(result, job.out, _WORDS[result["verdict"]])
