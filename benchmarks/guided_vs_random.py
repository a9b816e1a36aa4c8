"""LEMON's guidance against random choice (its table 6), on a target with a weak planted fault.

    python benchmarks/guided_vs_random.py [SEED.keras --data FILE.npz | ZOO-NAME] [--seconds 60]

Each strategy gets the same time, or as many mutants, several times over. Printed: the report that
`outvote report` writes for these campaigns. `--without-labels` leaves out the data's `y`.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.commands.blocks import seeds_of
from outvote.commands.fuzz.run import start
from outvote.core.case import load_data
from outvote.dialects.keras.targets import BUILT_IN
from outvote.report import rendered
from outvote.store.folder import comparison_of

# Negative numbers leak through ReLU, a little: on a trained network hardly visible.
FAULT = """
import keras.src.backend.torch.nn as nn
import torch
def relu(x):
    x = nn.convert_to_tensor(x)
    return torch.where(x > 0, x, x * {leak})
nn.relu = relu
"""


def without_labels(seed: SeedFile, folder: Path) -> SeedFile:
    """The same seed on the same inputs, of which nobody says what is right."""
    assert seed.data is not None, "a seed without data has no labels"
    arrays = {name: array for name, array in load_data(seed.data).items() if name != "y"}
    path = folder / f"{seed.name}.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return replace(seed, data=path)


def told(result: dict[str, Any]) -> str:
    """What guidance lives on: the seed's ACC, and how many mutants came up to their parent's."""
    rules = result["rules"]
    acc = ", ".join(f"{seed['acc']:.3g}" for seed in result["seeds"])
    joined, amplified = (sum(rule[key] for rule in rules) for key in ("joined", "amplified"))
    return f"ACC of the seed {acc}; {amplified} of {result['tested']} amplified, {joined} joined."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", nargs="?", default="lenet5", help="model file or zoo name")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--mutants", type=int, help="so many instead of a time")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--leak", type=float, default=0.02, help="size of the planted fault")
    parser.add_argument("--without-labels", action="store_true", help="leave out the seed's y")
    parser.add_argument("--out", type=Path, help="keep the campaigns and their comparison here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        script = Path(temporary) / "leaky_relu.py"
        script.write_text(FAULT.format(leak=options.leak))
        torch = BUILT_IN["torch"]
        faulty = replace(torch, name="leaky-torch", setup=script)
        seeds = seeds_of([options.seed], [options.data] if options.data else [])
        if options.without_labels:
            seeds = tuple(without_labels(seed, Path(temporary)) for seed in seeds)
        budget = Budget(options.mutants, None if options.mutants else options.seconds)
        job = FuzzJob(
            seeds=seeds,
            targets=(torch, faulty),
            budget=budget,
            minimise=0.0,  # the time is for mutants
            confirm=0,
            breed_known=True,  # as in the paper: the fault is one and known at once
        )
        root = options.out or Path(temporary)
        folders = []
        for repetition in range(options.repetitions):
            for strategy in ("lemon", "random"):
                folders.append(root / f"{strategy}-{repetition}")
                result = start(job.but(strategy=strategy, seed=repetition), folders[-1])
                print(f"{strategy} {repetition}: {result['summary']} {told(result)}", flush=True)
        print(rendered("markdown", comparison_of(folders)))


if __name__ == "__main__":
    main()
