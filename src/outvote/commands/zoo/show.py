"""What a person sees of the zoo."""

from __future__ import annotations

from typing import Any

from outvote.commands.terminal import Screen, table
from outvote.commands.zoo.job import BuildJob, ListJob, TrainJob


def show(result: dict[str, Any], job: ListJob | BuildJob | TrainJob, screen: Screen) -> None:
    """The list of models; or, of a job that was stopped, what is finished."""
    if isinstance(job, ListJob):
        rows = [
            (
                entry.name,
                ", ".join(entry.papers) or "ours",
                "x".join(map(str, entry.shape)),
                str(entry.layers),
                f"{entry.weights:,}",
                entry.data,
            )
            for entry in result["entries"]
        ]
        screen.print(table("Zoo", ("model", "papers", "input", "layers", "weights", "data"), rows))
    elif result["interrupted"]:
        screen.say(f"stopped; {result['done']} of {result['of']} models are finished and kept")
