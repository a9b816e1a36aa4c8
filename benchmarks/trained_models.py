"""Real trained models with their data on five targets: they must agree.

    python benchmarks/trained_models.py FOLDER [--count N]

FOLDER holds models/*.keras and the data files that DATA names. Prints one row per model.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.local import LocalPool

TARGETS = ("tensorflow", "jax", "torch", "openvino", "numpy")
Prepare = Callable[[Any], Any]
# prefix of the model's name -> data file, how its x becomes the model's input
DATA: dict[str, tuple[str, Prepare]] = {
    "deepxplore_lenet": ("mnist_test.npz", lambda x: (x / 255.0)[..., None]),
    "deepxplore_pdf": ("pdf_contagio.npz", lambda x: x),
    "driving": ("driving_64.npz", lambda x: x),
    "testrnn_mnist": ("mnist_test.npz", lambda x: x / 255.0),
    "mlperf_resnet8": ("cifar10_test_2000.npz", lambda x: x),
    "g2p": ("g2p_words_2000.npz", lambda x: x),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=256)
    options = parser.parse_args()
    targets = tuple(BUILT_IN[name] for name in TARGETS)
    print(f"{'model':28} {'inputs':>6} {'seconds':>8} {'largest relative':>17}  verdict")
    with LocalPool(targets) as pool:
        for path in sorted((options.folder / "models").glob("*.keras")):
            name, prepare = next(v for k, v in DATA.items() if path.name.startswith(k))
            with np.load(options.folder / name) as file:
                arrays = {"x": prepare(file["x"][: options.count]).astype("float32")}
                if "y" in file.files:
                    arrays["y"] = file["y"][: options.count]
            checked = check_in(pool, Job(path, targets, data=arrays))
            largest = max(
                m.maximum for p in checked.comparisons for m in p.measured if m.name == "relative"
            )
            count = len(arrays["x"])
            print(
                f"{path.stem:28} {count:6} {checked.seconds:8.1f} {largest:17.1e}  "
                f"{checked.verdict}",
                flush=True,
            )
            for finding in checked.findings:
                print(f"    {finding.triage}: {finding.title}", flush=True)


if __name__ == "__main__":
    main()
