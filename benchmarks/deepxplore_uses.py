"""What DeepXplore's finds are good for (7.3): retraining, and polluted training data, on MNIST.

    python benchmarks/deepxplore_uses.py DATA
    python benchmarks/deepxplore_uses.py DATA --only pollution --repetitions 1

DATA is a folder with mnist_train.npz, mnist_test.npz and models/ (the authors' LeNets).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outvote.commands.pollution.run import pollution_in
from outvote.core.arrays import Array
from outvote.dialects.keras.targets import BUILT_IN
from outvote.explore.expedition import Expedition
from outvote.explore.explore import explore_in
from outvote.explore.job import Explored, ExploreJob, Retraining
from outvote.explore.retrained import retrain
from outvote.explore.votes import labels_of, majority
from outvote.run.local import LocalPool
from outvote.run.pool import Pool

_TRAIN = """
import os, sys
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import keras, numpy as np
from keras import layers
data, out, epochs, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
keras.utils.set_random_seed(seed)
model = keras.Sequential([
    keras.Input((28, 28, 1)),
    layers.Conv2D(6, 5, padding="same", activation="relu"), layers.MaxPooling2D(),
    layers.Conv2D(16, 5, padding="same", activation="relu"), layers.MaxPooling2D(),
    layers.Flatten(), layers.Dense(120, activation="relu"), layers.Dense(84, activation="relu"),
    layers.Dense(10, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy")
with np.load(data) as file:
    model.fit(file["x"], file["y"], batch_size=128, epochs=epochs, verbose=0)
model.save(out)
"""


def mnist(data: Path, part: str) -> tuple[Array, Array]:
    with np.load(data / f"mnist_{part}.npz") as file:
        return (file["x"] / 255).astype(np.float32)[..., None], file["y"].astype(np.int64)


def pollution(pool: Pool, options: argparse.Namespace) -> None:
    """30 % of the 9s labelled 1 (the paper finds 95.6 % of them)."""
    print("## Pollution: 30 % of the 9s labelled 1\n")
    x, y = mnist(options.data, "train")
    x, y = x[: options.samples], y[: options.samples]
    shares = []
    for number in range(options.repetitions):
        rng = np.random.default_rng(number)
        nines = np.flatnonzero(y == 9)
        falsified = rng.choice(nines, int(0.3 * len(nines)), replace=False)
        labels = y.copy()
        labels[falsified] = 1
        with tempfile.TemporaryDirectory() as folder:
            models = tuple(
                _trained(Path(folder), name, x, truth, options.epochs, number)
                for name, truth in (("clean", y), ("polluted", labels))
            )
            job = ExploreJob(
                models,
                {"x": x, "y": labels},
                BUILT_IN[options.target],
                constraint="none",
                step=3,
                count=2000,
                seed=number,
            )
            result = pollution_in(pool, job)
        shares.append(_tell(result, falsified))
    for name, values in zip(("found", "precision"), zip(*shares, strict=True), strict=True):
        print(f"{name}: {spread(values)}")
    print(flush=True)


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation of the repetitions, in per cent."""
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{100 * np.mean(values):.2f} ± {100 * deviation:.2f} %"


def _trained(folder: Path, name: str, x: Array, y: Array, epochs: int, seed: int) -> Path:
    data, path = folder / f"{name}.npz", folder / f"{name}.keras"
    np.savez(data, x=x, y=y)
    subprocess.run(
        [sys.executable, "-c", _TRAIN, str(data), str(path), str(epochs), str(seed)], check=True
    )
    data.unlink()
    return path


def _tell(result: dict[str, Any], falsified: Array) -> tuple[float, float]:
    """Print, and return, which share of the falsified was found, and how many suspects were."""
    suspects = set(result["suspects"])
    hit = len(suspects & set(falsified.tolist()))
    evidence = result["evidence"] or {}
    print(
        f"evidence {evidence.get('true')} -> {evidence.get('false')}; found {hit} of "
        f"{len(falsified)} falsified samples ({hit / len(falsified):.1%}; paper 95.6 %) among "
        f"{len(suspects)} suspects (precision {hit / max(len(suspects), 1):.1%})\n",
        flush=True,
    )
    return hit / len(falsified), hit / max(len(suspects), 1)


def retraining(pool: Pool, options: argparse.Namespace) -> None:
    """The paper's setting: 60,000 samples and 100 finds, 5 epochs (1 to 3 % over the baselines).

    Three test sets: MNIST's own without the seeds; the same under another light; and finds from
    other seeds. The labels of the last two are those of the pictures that they were made of.
    """
    print(f"## Retraining: {options.train} samples and 100 inputs, 5 epochs\n")
    x, y = mnist(options.data, "train")
    seeds, truth = mnist(options.data, "test")
    models = tuple(options.data / "models" / f"deepxplore_lenet{n}.keras" for n in (1, 4, 5))
    gains: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for number in range(options.repetitions):
        rng = np.random.default_rng(number)
        order = rng.permutation(len(seeds))
        few, rest = order[:250], order[250:]
        part = rng.choice(len(x), min(options.train, len(x)), replace=False)
        job = ExploreJob(
            models,
            {"x": seeds[few]},
            BUILT_IN[options.target],
            seed=number,
            batch_size=options.batch,
            baselines=False,
        )
        explored = explore_in(pool, job)
        bright = np.clip(seeds[rest] + 0.35, 0, 1).astype(np.float32)
        wish = Retraining(
            {"x": x[part], "y": y[part]},
            {"x": seeds[rest], "y": truth[rest]},
            learning_rate=options.learning_rate,
            more_tests={
                "brighter": {"x": bright, "y": truth[rest]},
                "true finds": _unseen(explored, truth[few]),
            },
        )
        retrain(Expedition(pool, job, explored), wish)
        _note(number, explored.retraining, gains)
    _show(gains)


def _unseen(explored: Explored, truth: Array) -> dict[str, Array]:
    """Finds beyond the first 100 with a majority, labelled as the seeds that they came from."""
    assert explored.found is not None
    voted = np.flatnonzero(majority(labels_of(explored.found, explored)) >= 0)[100:]
    return {"x": explored.found.inputs[0][voted], "y": truth[explored.found.seed[voted]]}


def _note(
    number: int,
    result: dict[str, Any] | None,
    gains: dict[tuple[str, str, str], list[tuple[float, float]]],
) -> None:
    """Print one repetition, and keep it."""
    assert result is not None
    sizes = {"test": result["test"], **result["others"]}
    told = ", ".join(f"{count} {name}" for name, count in sizes.items())
    print(f"repetition {number + 1}: {result['added']} inputs added; tests: {told}", flush=True)
    for row in result["runs"]:
        for name, scores in {"test": row, **row["others"]}.items():
            before, after = scores["before"], scores["accuracy"][-1]
            gains.setdefault((name, row["model"], row["added"]), []).append((before, after))
            print(f"  {name:10} {row['model']} {row['added']:8} {before:.2%} -> {after:.2%}")


def _show(gains: dict[tuple[str, str, str], list[tuple[float, float]]]) -> None:
    """Mean and spread over the repetitions."""
    print("\n| test set | model | added | before | after |\n|---|---|---|---|---|")
    for (name, model, added), pairs in sorted(gains.items()):
        before, after = zip(*pairs, strict=True)
        print(f"| {name} | {model} | {added} | {spread(before)} | {spread(after)} |", flush=True)
    print()


PARTS = {"pollution": pollution, "retraining": retraining}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--target", default="torch")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3, help="of training the two models")
    parser.add_argument("--samples", type=int, default=60_000, help="training samples, polluted")
    parser.add_argument("--train", type=int, default=60_000, help="training samples for retraining")
    parser.add_argument("--learning-rate", type=float, default=1e-4, help="of retraining (Adam)")
    parser.add_argument("--batch", type=int, default=256, help="of retraining")
    options = parser.parse_args()
    with LocalPool([BUILT_IN[options.target]]) as pool:
        pool.start()
        for name in options.only or PARTS:
            PARTS[name](pool, options)


if __name__ == "__main__":
    main()
