"""CRADLE's table II in small: TensorFlow against Theano over versions of Keras 2.

    python benchmarks/cradle_table2.py                     # all models, six versions
    python benchmarks/cradle_table2.py LeNet-1 InceptionV3 # some models
    python benchmarks/cradle_table2.py --versions 2.1.4,2.1.5

Models have random weights and see random inputs with random labels. An inconsistency is a version
on which the two backends differ by more than rounding; equal patterns of one model over versions
are one unique inconsistency (CRADLE, III-B). Each unique one is localised: the kinds of layers that
differ even alone, the first faulty layer, and the first layer above the third quartile of R_L.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from applications import build
from outvote.bench.noise import NoiseFloor, measure_noise
from outvote.bench.reader import read_model
from outvote.core.case import Case, fit
from outvote.core.protocol import RunModel
from outvote.core.target import Target
from outvote.dialects.keras.targets import helpers
from outvote.findings.blame import Blame
from outvote.findings.finding import Finding
from outvote.judge.compare import Settings, compare_all
from outvote.judge.truth import interpret
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.process import Limits
from outvote.targets.choose import choose, known_targets
from outvote.targets.environments.provide import provide

VERSIONS = ("2.0.5", "2.0.9", "2.1.4", "2.1.5", "2.2.4", "2.3.1")
BACKENDS = ("tensorflow", "theano")
SIZES = {"VGG16": 32, "ResNet50": 32, "InceptionV3": 75, "MobileNet": 32, "DenseNet121": 32,
         "Xception": 71}  # fmt: skip
LENETS = {"LeNet-1": ((4, 12), ()), "LeNet-4": ((6, 16), (84,)), "LeNet-5": ((6, 16), (120, 84))}
_LENET = """
import sys, keras
from keras import layers
keras.utils.set_random_seed(0)
filters, dense, path = eval(sys.argv[1]), eval(sys.argv[2]), sys.argv[3]
model = keras.Sequential([keras.Input((28, 28, 1))])
for n in filters:
    model.add(layers.Conv2D(n, 5, padding="same", activation="relu"))
    model.add(layers.MaxPooling2D())
model.add(layers.Flatten())
for n in dense:
    model.add(layers.Dense(n, activation="relu"))
model.add(layers.Dense(10, activation="softmax"))
model.save(path)
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=[*LENETS, *SIZES])
    parser.add_argument("--versions", default=",".join(VERSIONS))
    parser.add_argument("--inputs", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "outvote-apps")
    options = parser.parse_args()
    versions = options.versions.split(",")
    began = time.monotonic()
    names = [f"keras=={version}/{backend}" for version in versions for backend in BACKENDS]
    ready = provide(choose(names, known_targets()))
    print(f"environments ready after {time.monotonic() - began:.0f} s\n", flush=True)
    print(f"{'model':12} {'total':>5} {'unique':>6} {'seconds':>8}  per version", flush=True)
    totals = [0, 0]
    for name in options.models:
        found = row(name, versions, ready, options)
        totals = [a + b for a, b in zip(totals, found, strict=True)]
    print(f"{'all':12} {totals[0]:5} {totals[1]:6}")


@dataclass
class Row:
    """What is known of one model: a cell per version, and the unique inconsistencies."""

    cells: list[str] = field(default_factory=list)
    patterns: list[object] = field(default_factory=list)
    layers: list[str] = field(default_factory=list)
    noise: NoiseFloor | None = None  # of the model: measured once, on TensorFlow


def row(
    name: str, versions: list[str], targets: tuple[Target, ...], options: argparse.Namespace
) -> tuple[int, int]:
    """One model on all versions: a line of the table, then a line per unique inconsistency."""
    path = model_file(name, options.folder)
    began = time.monotonic()
    found = Row()
    limits = Limits(silence_seconds=1800)
    with LocalPool([*targets, *helpers(targets)], limits=limits, jobs=options.jobs) as pool:
        model, shapes = read_model(pool, path, None)
        rng = np.random.default_rng(0)
        shape = (options.inputs, *(int(n or 1) for n in model.inputs[0].shape[1:]))
        arrays = {
            "x": rng.normal(size=shape).astype("float32"),
            "y": rng.integers(0, int(shapes[0][-1] or 2), options.inputs),
        }
        data = fit(arrays, model, "random", allow_nan=False)
        case = Case(model, shapes, data, interpret(data.truth, shapes[0]))
        for helper in helpers(targets):
            pool.stop(helper.name)
        for version in versions:
            pair = [t.name for t in targets if t.name.startswith(f"keras=={version}/")]
            compare_versions(pool, case, pair, found)
            for target in pair:
                pool.stop(target)
    total = sum(cell.startswith("U") for cell in found.cells)
    seconds = time.monotonic() - began
    shown = "  ".join(f"{v} {c}" for v, c in zip(versions, found.cells, strict=True))
    print(f"{name:12} {total:5} {len(found.patterns):6} {seconds:8.0f}  {shown}", flush=True)
    for text in found.layers:
        print(f"{'':12} {text}", flush=True)
    return total, len(found.patterns)


def compare_versions(pool: Pool, case: Case, pair: list[str], found: Row) -> None:
    """The two backends of one version of Keras; a pattern not seen before is localised."""
    settings = Settings()
    request = RunModel(
        model=case.model,
        inputs=tuple(pool.blobs.put(array) for array in case.data.inputs),
        batch=case.data.count,
        steps=len(case.model.layers),
    )
    runs = pool.ask_all(pair, request)
    failed = [run for run in runs.values() if not run.ok]
    if failed:
        found.cells.append(failed[0].outcome.value)
        text = f"{failed[0].target}: {failed[0].outcome.value}: {failed[0].message[:110]}"
        found.layers.append(text)
        return
    outputs = {n: run.reply.outputs for n, run in runs.items()}
    pairs = compare_all(outputs, case.truth, settings)
    explained = set()
    if pairs[0].inconsistent:
        found.noise = measure_noise(pool, case, outputs, pairs, pair[:1], settings, case.data.count)
        if found.noise is not None:
            explained = found.noise.explained(pairs, outputs)
    if not pairs[0].inconsistent or explained:
        found.cells.append("-")
        return
    pattern = tuple(m.pattern.counts for m in pairs[0].measured)
    if pattern not in found.patterns:
        found.patterns.append(pattern)
        blame = Blame(pool, case, settings, case.data.count, outputs)
        label = f"U{len(found.patterns)}"
        for finding in blame.differences(pairs, explained, found.noise):
            found.layers.append(f"{label}: {told(finding)}")
    found.cells.append(f"U{found.patterns.index(pattern) + 1}")


def told(finding: Finding) -> str:
    if finding.layer is None:
        return finding.title
    located = finding.localization
    red = [item.first for item in located.introductions.values()] if located else []
    alike = (
        {f.layer.name for f in located.faults if f.layer.kind == finding.layer.kind}
        if located
        else set()
    )
    return (
        f"{finding.layer.kind}, {len(alike)} layers, first {finding.layer.name!r}, "
        f"relative {finding.distance or 0:.2g}; first by R_L {red[0] if red else None!r}"
    )


def model_file(name: str, folder: Path) -> Path:
    if name not in LENETS:
        return build(name, folder, SIZES[name])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.keras"
    if not path.exists():
        command = [sys.executable, "-c", _LENET, *map(repr, LENETS[name]), str(path)]
        env = {**os.environ, "KERAS_BACKEND": "jax"}
        subprocess.run(command, env=env, check=True, capture_output=True)
    return path


if __name__ == "__main__":
    main()
