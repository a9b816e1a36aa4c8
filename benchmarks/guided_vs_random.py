"""LEMON's guidance against random choice (its table 6), on a target with a weak planted fault.

    python benchmarks/guided_vs_random.py [SEED.keras --data FILE.npz | ZOO-NAME] [--seconds 60]

Each strategy gets the same time, several times over. Printed: the report that `outvote report`
writes for these campaigns.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from outvote.campaign.job import Budget, FuzzJob
from outvote.commands.blocks import seeds_of
from outvote.commands.fuzz.run import compare, start
from outvote.dialects.keras.targets import BUILT_IN
from outvote.report.compare import markdown as compare_markdown

# Negative numbers leak through ReLU, a little: on a trained network hardly visible.
FAULT = """
import keras.src.backend.torch.nn as nn
import torch
def relu(x):
    x = nn.convert_to_tensor(x)
    return torch.where(x > 0, x, x * {leak})
nn.relu = relu
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", nargs="?", default="lenet5", help="model file or zoo name")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--leak", type=float, default=0.02, help="size of the planted fault")
    parser.add_argument("--out", type=Path, help="keep the campaigns and their comparison here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        script = Path(temporary) / "leaky_relu.py"
        script.write_text(FAULT.format(leak=options.leak))
        torch = BUILT_IN["torch"]
        faulty = replace(torch, name="leaky-torch", setup=script)
        job = FuzzJob(
            seeds=seeds_of([options.seed], [options.data] if options.data else []),
            targets=(torch, faulty),
            budget=Budget(seconds=options.seconds),
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
                print(f"{strategy} {repetition}: {result['summary']}", flush=True)
        print(compare_markdown.render(compare(folders, root / "compared")))


if __name__ == "__main__":
    main()
