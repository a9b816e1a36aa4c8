"""LEMON's guidance against random choice (its table 6), on a target with a weak planted fault.

    python benchmarks/guided_vs_random.py [SEED.keras --data FILE.npz | ZOO-NAME] [--seconds 60]

Each strategy gets the same time, several times over. Printed: mutants, inconsistencies (D_MAD
above LEMON's T) that the seed does not show, and by how much mutants amplify D_MAD.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from outvote.campaign.job import Budget, FuzzJob
from outvote.commands.fuzz import seeds_of
from outvote.fuzzing import start
from outvote.targets import BUILT_IN

# Negative numbers leak through ReLU, a little: on a trained network hardly visible.
FAULT = """
import keras.src.backend.torch.nn as nn
import torch
def relu(x):
    x = nn.convert_to_tensor(x)
    return torch.where(x > 0, x, x * {leak})
nn.relu = relu
"""


def campaign(job: FuzzJob) -> dict[str, Any]:
    """The figures of one campaign."""
    with tempfile.TemporaryDirectory() as folder:
        result = start(job, Path(folder))
    rows = result["amplification"]
    amplified = [row["amplification"] for row in rows if row["amplification"] is not None]
    return {
        "mutants": result["tested"],
        "mutants_only": sum(row["mutants_only"] for row in rows),
        "amplification": mean(amplified) if amplified else 0.0,
        "largest": max(row["largest"] for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", nargs="?", default="lenet5", help="model file or zoo name")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--leak", type=float, default=0.02, help="size of the planted fault")
    options = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {"lemon": [], "random": []}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "leaky_relu.py"
        script.write_text(FAULT.format(leak=options.leak))
        torch = BUILT_IN["torch"]
        faulty = replace(torch, name="leaky-torch", setup=script)
        job = FuzzJob(
            seeds=seeds_of([options.seed], [options.data] if options.data else []),
            targets=(torch, faulty),
            budget=Budget(seconds=options.seconds),
            breed_known=True,  # as in the paper: the fault is one and known at once
        )
        for repetition in range(options.repetitions):
            for strategy in found:
                figures = campaign(job.but(strategy=strategy, seed=repetition))
                found[strategy].append(figures)
                told = ", ".join(f"{key} {value:.3g}" for key, value in figures.items())
                print(f"{strategy} {repetition}: {told}", flush=True)
    for key in ("mutants", "mutants_only", "amplification", "largest"):
        both = [mean(row[key] for row in found[name]) for name in ("lemon", "random")]
        ratio = both[0] / both[1] if both[1] else float("nan")
        print(f"{key}: lemon {both[0]:.3g}, random {both[1]:.3g}, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
