"""What it is worth that a campaign is told which lines of Keras its mutants reach.

    python benchmarks/guided_by_lines.py [--targets numpy,torch] [--seconds 300] [--repetitions 3]

`outvote fuzz --strategy layers` without seeds, in turns with and without `--no-line-coverage`, for
equal minutes and from the same seeds of chance. Printed for each campaign: layers that were run,
how many of them a minute, findings and their causes, kinds of differences with those that wait,
lines of Keras reached; then the means. Without, nobody watched, so lines are not known.
"""

from __future__ import annotations

import argparse
from statistics import fmean
from typing import Any

from outvote.api import fuzz
from outvote.campaign.job import FuzzJob

WAYS = {"with": False, "without": True}  # whether nobody watches the lines


def counts(result: dict[str, Any]) -> dict[str, float]:
    """What one campaign came to; what is only rounding does not count."""
    real = [finding for finding in result["findings"] if finding["triage"] != "precision"]
    return {
        "layers": result["tested"],
        "a minute": 60 * result["tested"] / max(1e-9, result["time"]["searching"]),
        "findings": len(real),
        "causes": len(result["causes"]),
        "kinds of differences": len(real) + result["time"]["waiting"],
    }


def lines(result: dict[str, Any]) -> str:
    told = [f"{name} {row['reached']} of {row['of']}" for name, row in result["lines"].items()]
    return f"; lines: {', '.join(told)}" if told else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", default="numpy,torch")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--minimise", type=float, default=FuzzJob.minimise)
    options = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for repetition in range(options.repetitions):
        for way, unwatched in WAYS.items():
            result = fuzz(
                strategy="layers",
                targets=options.targets.split(","),
                budget=f"{options.seconds}s",
                seed=repetition,
                no_line_coverage=unwatched,
                minimise=options.minimise,
                confirm=0,
                progress=False,
            ).data
            found[way].append(counts(result))
            told = ", ".join(f"{count:.0f} {name}" for name, count in found[way][-1].items())
            print(f"{way} {repetition}: {told}{lines(result)}", flush=True)
    for way, rows in found.items():
        means = ", ".join(f"{fmean(row[name] for row in rows):.1f} {name}" for name in rows[0])
        print(f"{way}, mean: {means}", flush=True)


if __name__ == "__main__":
    main()
