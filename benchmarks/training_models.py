"""One step of training on models as people have them: nothing but float64 may call anybody wrong.

    python benchmarks/training_models.py --zoo all --applications MobileNetV2 --data FOLDER
    python benchmarks/training_models.py --zoo tiny,lenet5,gru-imdb

The zoo, models of keras.applications, and FOLDER/models/*.keras with the data that
trained_models.py names, each through `check --train --steps 1` on TensorFlow, JAX and PyTorch.
Prints a row per model, and every finding of training with its reason.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from applications import LATER, NAMES, build
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.core.dialect import zoo_of
from outvote.core.errors import UsageError
from outvote.core.lesson import Lesson
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.local import LocalPool
from trained_models import DATA

TARGETS = tuple(BUILT_IN[name] for name in ("tensorflow", "jax", "torch"))
SMALLEST = {"Xception": 71, "InceptionV3": 75, "InceptionResNetV2": 75}  # pictures they take
ONE_STEP = Lesson({"class_name": "Adam"}, steps=1)
Case = tuple[str, Path, Any]


def cases(options: argparse.Namespace, folder: Path) -> Iterator[Case]:
    """Name, model and data of each."""
    for word in options.zoo.split(",") if options.zoo else ():
        zoo = zoo_of(word)
        for name in zoo.members_of(word):
            model, data = zoo.seed_file(name)
            yield name, model, data
    for name in options.applications:
        size = max(options.size, SMALLEST.get(name, 0))
        yield name, build(name, folder, size), None
    if options.data:
        for path in sorted((options.data / "models").glob("*.keras")):
            file, prepare = next(v for k, v in DATA.items() if path.name.startswith(k))
            with np.load(options.data / file) as held:
                arrays = {"x": prepare(held["x"][: options.count]).astype("float32")}
                if "y" in held.files:
                    arrays["y"] = held["y"][: options.count]
            yield path.stem, path, arrays


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--zoo", default="tiny", help="models or groups of the zoo, with commas")
    applications = [*NAMES, *LATER]
    parser.add_argument("--applications", nargs="*", default=[], choices=applications)
    parser.add_argument("--data", type=Path, help="a folder with models/*.keras and their data")
    parser.add_argument("--size", type=int, default=96, help="of pictures, if it can (%(default)s)")
    parser.add_argument("--count", type=int, default=4)
    options = parser.parse_args()
    told: Counter[str] = Counter()
    print(
        f"{'model':28} {'seconds':>8} {'arrays':>7} {'gradients apart':>16}  findings of training"
    )
    with tempfile.TemporaryDirectory() as folder, LocalPool(TARGETS) as pool:
        for name, model, data in cases(options, Path(folder)):
            job = Job(model, TARGETS, data=data, count=options.count, lesson=ONE_STEP)
            try:
                checked = check_in(pool, job)
            except UsageError as error:  # such as layers that draw at random
                print(f"{name:28} refused: {error}", flush=True)
                told["refused"] += 1
                continue
            assert checked.trained is not None
            stages = checked.trained.stages
            apart = [seen.distance for seen in stages if seen.stage == "gradient"]
            far = max(apart, default=float("nan"))  # where no stage got that far
            found = [f for f in checked.findings if f.stage is not None]
            told.update(f.triage for f in found)
            told["models"] += 1
            words = ", ".join(f.triage for f in found) or "none"
            arrays = sum(seen.compared for seen in stages)
            print(f"{name:28} {checked.seconds:8.1f} {arrays:7} {far:16.1e}  {words}", flush=True)
            for finding in found:
                print(f"    {finding.triage}: {finding.title}. {finding.reason}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in told.items()))


if __name__ == "__main__":
    main()
