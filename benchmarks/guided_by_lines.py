"""What it is worth that a campaign is told which lines of Keras its mutants reach.

    python benchmarks/guided_by_lines.py [--targets numpy,torch] [--seconds 300] [--repetitions 3]

Single layers (`--strategy layers`) on the tiny models of the zoo, in turns with and without
`--no-line-coverage`, for equal minutes and from the same seeds of chance. Printed for each
campaign: layers that were run, findings and their causes, lines of Keras reached; then the means.
Without, nobody watched, so lines are not known.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

from outvote.campaign.job import Budget, FuzzJob
from outvote.commands.blocks import seeds_of
from outvote.commands.fuzz.run import start
from outvote.core.dialect import zoo_of
from outvote.dialects.keras.targets import BUILT_IN

WAYS = {"with": True, "without": False}


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
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--rules", default="", help="FL and others by commas; default: all")
    parser.add_argument("--minimise", type=float, default=FuzzJob.minimise)
    options = parser.parse_args()
    job = FuzzJob(
        seeds=seeds_of(list(zoo_of("tiny").members_of("tiny")), []),
        targets=tuple(BUILT_IN[name] for name in options.targets.split(",")),
        strategy="layers",
        rules=tuple(name for name in options.rules.split(",") if name),
        budget=Budget(seconds=options.seconds),
        minimise=options.minimise,
        confirm=0,
    )
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for repetition in range(options.repetitions):
            for way, watched in WAYS.items():
                out = Path(folder) / f"{way}-{repetition}"
                result = start(job.but(seed=repetition, line_coverage=watched), out)
                found[way].append(counts(result))
                told = ", ".join(f"{count:.0f} {name}" for name, count in found[way][-1].items())
                print(f"{way} {repetition}: {told}{lines(result)}", flush=True)
    for way, rows in found.items():
        means = ", ".join(f"{fmean(row[name] for row in rows):.1f} {name}" for name in rows[0])
        print(f"{way}, mean: {means}", flush=True)


if __name__ == "__main__":
    main()
