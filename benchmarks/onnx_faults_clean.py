"""False bugs on released runtimes: real graphs and the zoo exported, part of onnx_faults.py.

A bug is false where no exact computation in float64 supports it. Graphs: those of whole networks
and of converted PyTorch layers that the onnx package brings, on the inputs that lie beside them if
there are any, models of the zoo, and the `.onnx` and `.keras` files in the folders that are named.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.core.errors import UsageError
from outvote.dialects.keras.zoo.catalog import ENTRIES
from outvote.dialects.keras.zoo.seeds import seed_file
from outvote.dialects.onnx.targets import BUILT_IN, DEFAULT
from outvote.findings.finding import Finding
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.process import Limits

_BROUGHT = Path(onnx.__file__).parent / "backend" / "test" / "data"
_LARGEST = 2_000_000  # weights of a model of the zoo
_COUNT = 2
LIMITS = Limits(silence_seconds=600.0)  # large networks take minutes in NumPy
_EXPORT = """
import sys, warnings
warnings.simplefilter("ignore")
import keras, torch
model = keras.saving.load_model(sys.argv[1], compile=False)
model.eval()
given = [torch.zeros((2, *[n or 16 for n in x.shape[1:]]), dtype=getattr(torch, x.dtype))
         for x in model.inputs]
names = [f"x{place}" for place, _ in enumerate(given)]
with torch.no_grad():
    torch.onnx.export(model, tuple(given), sys.argv[2], input_names=names, output_names=["y"],
                      dynamic_axes={name: {0: "n"} for name in names}, opset_version=17,
                      dynamo=False)
"""


def exported(path: Path, folder: Path) -> Path:
    """A `.keras` file as PyTorch exports it."""
    made = folder / f"{path.stem}.onnx"
    env = {**os.environ, "KERAS_BACKEND": "torch"}
    command = [sys.executable, "-c", _EXPORT, str(path), str(made)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise UsageError(done.stderr.strip().splitlines()[-1])
    return made


def brought() -> Iterator[Path]:
    """Graphs that come with the onnx package."""
    for name in ("pytorch-converted", "pytorch-operator", "simple"):
        yield from sorted((_BROUGHT / name).glob("*/model.onnx"))
    yield from sorted((_BROUGHT / "light").glob("*.onnx"))


def zoo() -> Iterator[Path]:
    for name, entry in ENTRIES.items():
        if entry.weights <= _LARGEST:
            yield seed_file(name)[0]


def label(path: Path) -> str:
    return path.parent.name if path.name == "model.onnx" else path.stem


def inputs_beside(path: Path, folder: Path) -> Path | None:
    """Inputs that the onnx package brings with a graph: sizes drawn at random may be illegal."""
    files = sorted((path.parent / "test_data_set_0").glob("input_*.pb"))
    if path.name != "model.onnx" or not files:
        return None
    graph = onnx.load(path).graph
    constants = {item.name for item in graph.initializer}
    names = [item.name for item in graph.input if item.name not in constants]
    arrays = [numpy_helper.to_array(onnx.load_tensor(str(file))) for file in files]
    data = folder / f"{label(path)}.npz"
    np.savez(
        data,
        allow_pickle=False,
        **{
            name: array.astype(str) if array.dtype == object else array
            for name, array in zip(names, arrays, strict=True)
        },
    )
    return data


def check_clean(pool: Pool, path: Path, folder: Path) -> tuple[str, list[Finding]]:
    """What a check of one file says on the released targets: the verdict, and its bugs."""
    model = exported(path, folder) if path.suffix == ".keras" else path
    targets = tuple(BUILT_IN[name] for name in DEFAULT)
    job = Job(model, targets, count=_COUNT, limits=LIMITS)
    data = inputs_beside(path, folder)
    if data is not None:
        job = Job(model, targets, data=data, limits=LIMITS)
    checked = check_in(pool, job)
    return checked.verdict, [f for f in checked.findings if f.triage == "bug"]


def has_no_numbers(finding: Finding) -> bool:
    return finding.kind in ("crash", "hang", "shape")


def is_supported(finding: Finding) -> bool:
    """Whether a computation in float64 speaks against the accused.

    One that fails or gives another shape has no numbers to be held against it.
    """
    if has_no_numbers(finding):
        return True
    proof, accused = finding.proof, finding.accused
    if proof is None or accused is None or accused not in proof.errors:
        return False
    own = proof.errors[accused]
    return not own <= min(proof.errors.values()) or bool(np.isnan(own))


def run_clean(folders: Sequence[Path], out: Path) -> None:
    """Check every graph; print each bug, and how many nothing supports."""
    named = (
        path
        for folder in folders
        for pattern in ("*.onnx", "*.keras")
        for path in sorted(folder.rglob(pattern))
    )
    files: Iterable[Path] = chain(named, brought(), zoo())
    checked = bugs = false = 0
    with LocalPool([BUILT_IN[name] for name in DEFAULT], limits=LIMITS) as pool:
        for path in files:
            began = time.monotonic()
            try:
                verdict, found = check_clean(pool, path, out)
            except UsageError as error:
                print(f"{label(path):40} not checked: {str(error)[:160]}", flush=True)
                continue
            checked += 1
            bugs += len(found)
            print(f"{label(path):40} {time.monotonic() - began:5.1f} s  {verdict}", flush=True)
            for finding in found:
                is_false = not is_supported(finding)
                false += is_false
                word = "no numbers" if has_no_numbers(finding) else "by float64"
                print(f"    {'FALSE' if is_false else word}: {finding.title}", flush=True)
    print(f"\n{bugs} bug verdicts on {checked} graphs, without support by float64: {false}")
