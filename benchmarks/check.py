"""What `check` costs beside the bare frameworks, in one run.

    python benchmarks/check.py                       # MobileNetV2 and ResNet50, 64 inputs
    python benchmarks/check.py --size 96 --skip-localisation
    python benchmarks/check.py --train --size 64 --inputs 8 --models MobileNetV2

For each model: the bare frameworks (a process each, import, load, forward passes with one thread,
as many at a time as there are cores), then `check` on the same targets with the same inputs.
Prints wall times, their ratio, the ratio of the forward passes alone, and peak memory. Last, how
long InceptionResNetV2 with a planted fault takes to localise. `--train`: the bare frameworks take
three steps of Adam after the forward passes, and `check` compares training.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from applications import build
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.run import run_check
from outvote.core.events import Event
from outvote.core.lesson import Lesson
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.pool import Pool

TARGETS = ("tensorflow", "jax", "torch")
FAULT = Path(__file__).parent.parent / "examples" / "faults" / "batchnorm_epsilon.py"

_BARE = """
import json, sys, time
began = time.perf_counter()
import keras, numpy as np
name, path, data, batch = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
if name == "tensorflow":
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
if name == "torch":
    import torch
    torch.set_num_threads(1)
model = keras.saving.load_model(path, compile=False)
x = np.load(data)["x"]
loaded = time.perf_counter()
def forward():
    for start in range(0, len(x), batch):
        keras.ops.convert_to_numpy(model(x[start : start + batch], training=False))
if name == "torch":
    with torch.no_grad():
        forward()
else:
    forward()
if len(sys.argv) > 5:
    y = np.random.default_rng(0).normal(size=model.compute_output_shape(x.shape)).astype("float32")
    model.compile("adam", "mse", run_eagerly=True)
    for step in range(3):
        model.train_on_batch(x[:batch], y[:batch])
done = time.perf_counter()
print(json.dumps({"total": done - began, "forward": done - loaded}))
"""


def bare(path: Path, data: Path, batch: int, train: bool = False) -> tuple[float, dict[str, float]]:
    """Wall time of the bare frameworks side by side, and each one's passes."""

    def one(name: str) -> float:
        env = {
            **os.environ,
            "KERAS_BACKEND": name,
            "OMP_NUM_THREADS": "1",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
        }
        command = [sys.executable, "-c", _BARE, name, str(path), str(data), str(batch)]
        command += ["train"] * train
        done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        return float(json.loads(done.stdout.splitlines()[-1])["forward"])

    began = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        forward = dict(zip(TARGETS, threads.map(one, TARGETS), strict=True))
    return time.monotonic() - began, forward


class Phases:
    """A Watch that notes how long each phase takes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, text: str, pool: Pool, names: Sequence[str]) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[text.split()[0]] = time.monotonic() - began

    def tell(self, event: Event) -> None:
        pass


def timed_check(
    path: Path, data: Path | None, planted: bool, train: bool = False
) -> tuple[Checked, float, Phases]:
    targets = [BUILT_IN[name] for name in TARGETS]
    if planted:
        targets[0] = replace(targets[0], name="planted", setup=FAULT)
    phases = Phases()
    began = time.monotonic()
    count = None if data else 2
    lesson = Lesson({"class_name": "adam"}) if train else None
    checked = run_check(Job(path, tuple(targets), data=data, count=count, lesson=lesson), phases)
    return checked, time.monotonic() - began, phases


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--inputs", type=int, default=64)
    parser.add_argument("--models", nargs="*", default=["MobileNetV2", "ResNet50"])
    parser.add_argument("--skip-localisation", action="store_true")
    parser.add_argument("--train", action="store_true", help="three steps of training, too")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "outvote-apps")
    options = parser.parse_args()
    data = options.folder / "check-inputs.npz"
    options.folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    shape = (options.inputs, options.size, options.size, 3)
    np.savez(data, x=rng.normal(size=shape).astype("float32"))
    for name in options.models:
        path = build(name, options.folder, options.size)
        wall, forward = bare(path, data, 32, options.train)
        checked, total, phases = timed_check(path, data, planted=False, train=options.train)
        runs = {name: run.seconds for name, run in checked.runs.items()}
        print(f"{name}, {options.inputs} inputs of {options.size}x{options.size}")
        told = ", ".join(f"{k} {v:.1f}" for k, v in forward.items())
        print(f"  bare frameworks: {wall:.1f} s wall; forward passes {told} s")
        told = ", ".join(f"{k} {v:.1f}" for k, v in runs.items())
        print(f"  check:           {total:.1f} s wall; forward passes {told} s")
        print(
            f"  phases of check: {', '.join(f'{k} {v:.1f}' for k, v in phases.seconds.items())} s"
        )
        print(f"  RATIO of wall times: {total / wall:.2f}")
        if options.train:
            _memory(checked)
            continue
        print(f"  ratio of forward passes: {sum(runs.values()) / sum(forward.values()):.2f}")
        _memory(checked)
    if not options.skip_localisation and not options.train:
        path = build("InceptionResNetV2", options.folder, options.size)
        checked, total, phases = timed_check(path, None, planted=True)
        first = checked.findings[0] if checked.findings else None
        layer = first.layer.name if first and first.layer else None
        assert checked.case is not None
        print(f"InceptionResNetV2, {len(checked.case.model.layers)} layers, planted fault")
        print(
            f"  localisation: {phases.seconds['Localising']:.1f} s of {total:.1f} s; named {layer}"
        )
        _memory(checked)


def _memory(checked: Checked) -> None:
    driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    workers = ", ".join(f"{name} {peak >> 20}" for name, peak in checked.peaks.items())
    print(f"  peak memory: driver {driver} MiB; workers {workers} MiB", flush=True)


if __name__ == "__main__":
    main()
