"""Bugs of released Keras versions, as ground truth: seen in the bad one, gone in the fixed one?

    python benchmarks/real_bugs.py                  # every bug: check in both versions
    python benchmarks/real_bugs.py --only 1,3       # some
    python benchmarks/real_bugs.py --bisect         # also search the fixing release

A model of the one layer runs on several backends of its bad and of its fixed version of Keras.
Prints who was accused, what differed, and for live bugs who is accused today. Number 0 is CRADLE's
pooling bug on the classic libraries.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from outvote.commands.bisect.job import BisectJob
from outvote.commands.bisect.result import bisect_result
from outvote.commands.bisect.run import run_bisect
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import check_in, run_check
from outvote.core.errors import UsageError
from outvote.dialects.keras.targets import helpers
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.targets.choose import choose, known_targets
from outvote.targets.environments.provide import provide

_X86 = platform.machine() == "x86_64"
_HOLES = "np.array([[[1,2],[0,0],[3,1],[0,0],[2,2]],[[0,0],[1,1],[2,0],[1,3],[0,0]]], 'float32')"
_SPECIAL = "np.array([[-1.0],[0.3],[2.0],[np.inf],[np.nan]], 'float32')"
_BINS = "layers.Discretization(bin_boundaries=[0.0, 1.0, 2.0]"
_EDGED = "layers.Discretization(bin_boundaries=[0.1, 0.5, 3.0])"
_MASKED = (
    "(lambda x: keras.Model(x, layers.LSTM(3)(layers.Concatenate()([layers.Masking()(x), x]))))"
    "(keras.Input((4, 2)))"
)
_POOLING = "layers.AveragePooling2D(3, strides=2, padding='same')"
_FIRST = "data_format='channels_first'"


@dataclass(frozen=True)
class Bug:
    """One row: a layer, its input, the versions, and who is wrong."""

    number: int
    what: str
    layer: str  # Python: a layer, or a list of them
    shape: tuple[int | None, ...]
    wrong: tuple[str, ...]
    bad: str = ""  # both empty: live in the installed version
    fixed: str = ""
    data: str = ""  # Python; random normal numbers if empty
    dtype: str = "float32"
    right: tuple[str, ...] = ("tensorflow", "jax", "torch")
    start: str = ""  # where bisect begins; default: no bisect
    needs: tuple[tuple[str, Any], ...] = ()  # parameters without which a live one does not show
    whole: bool = False  # in a graph of several layers alone
    tied: bool = False  # as many votes for the wrong answer as for the right one

    @property
    def voters(self) -> tuple[str, ...]:
        backends = [name.partition(":")[0] for name in self.wrong]
        return tuple(name for name in self.right if name not in backends)


BUGS = (
    Bug(1, "AveragePooling2D same, odd size",
        "layers.AveragePooling2D(2, strides=2, padding='same')",
        (5, 6, 2), ("torch",), "3.4.1", "3.5.0", start="3.3.3"),
    Bug(2, "Conv2D same, strides 2", "layers.Conv2D(3, (3, 5), strides=2, padding='same')",
        (7, 9, 2), ("torch",), "3.8.0", "3.9.0", start="3.6.0"),
    Bug(3, "Conv2DTranspose same, strides 2",
        "layers.Conv2DTranspose(3, 3, strides=2, padding='same')",
        (4, 5, 2), ("torch",), "3.14.1", "3.15.0", start="3.12.0"),
    Bug(4, "stacked LSTM cells, mask with holes",
        "[layers.Masking(), layers.RNN([layers.LSTMCell(3), layers.LSTMCell(3)])]",
        (5, 2), ("jax", "numpy"), "3.9.2", "3.10.0", data=_HOLES,
        right=("tensorflow", "torch")),
    # Upstream calls the shape on NumPy odd; it is the documented one, and all give it in 3.4.0.
    Bug(5, "CategoryEncoding one_hot on (N, 1)",
        "layers.CategoryEncoding(num_tokens=4, output_mode='one_hot')", (1,),
        ("tensorflow", "jax", "torch"), "3.3.3", "3.4.0", right=("numpy",),
        data="np.array([[0],[2],[3]], 'int32')", dtype="int32"),
    Bug(6, "CategoryEncoding multi_hot on (N, 1)",
        "layers.CategoryEncoding(num_tokens=4, output_mode='multi_hot')", (1,), ("numpy",),
        "3.3.3", "3.4.0", data="np.array([[0],[2],[3]], 'int32')", dtype="int32", start="3.3.0"),
    Bug(7, "Discretization count", _BINS + ", output_mode='count')", (4,), ("jax:jit",),
        "3.3.3", "3.4.0", right=("tensorflow", "torch", "numpy"), start="3.3.0"),
    # Eager TensorFlow is right; what `predict` does, a graph, rounds to whole numbers first.
    Bug(8, "Discretization of inf and NaN", _EDGED, (1,), ("tensorflow:graph",),
        "3.10.0", "3.12.0", data=_SPECIAL, right=("jax", "torch", "numpy"), start="3.9.0"),
    # Layer by layer nothing is wrong: Keras' functional model keeps a size that it does not know.
    Bug(9, "Concatenate, one input masked", _MASKED, (4, 2),
        ("tensorflow:predict", "jax:predict", "torch:predict"),
        "3.8.0", "3.12.0", right=("numpy:predict",), whole=True),
    Bug(10, "Conv2D on an empty batch", "layers.Conv2D(3, 3)", (5, 5, 2),
        ("tensorflow", "jax", "numpy"), "3.13.2", "3.14.0", data="np.zeros((0, 5, 5, 2))",
        right=("torch",), start="3.13.0"),
    Bug(11, "Conv2D, kernel larger than the input", "layers.Conv2D(3, 5)", (None, None, 2),
        ("jax", "numpy"), "3.12.0", "3.13.0", data="np.ones((2, 3, 3, 2))",
        right=("tensorflow", "torch", "openvino")),
    Bug(12, "DepthwiseConv1D dilated, channels_first",
        f"layers.DepthwiseConv1D(3, dilation_rate=2, {_FIRST})", (2, 9), ("tensorflow:no-onednn",),
        "3.14.1", "3.15.0", right=("jax", "torch", "numpy"), start="3.12.0"),
    Bug(13, "SeparableConv2D channels_first", f"layers.SeparableConv2D(3, 3, {_FIRST})", (2, 6, 6),
        ("tensorflow:no-onednn",), "3.14.1", "3.15.0", right=("jax", "torch", "numpy")),
    Bug(14, "Conv3D channels_first", f"layers.Conv3D(3, 2, {_FIRST})", (2, 4, 4, 4),
        ("tensorflow:no-onednn",), "3.3.3", "3.5.0", right=("jax", "torch", "numpy")),
    Bug(15, "AveragePooling2D same, strides 2",
        _POOLING, (6, 8, 2), ("torch",), needs=(("padding", "same"),)),
    Bug(16, "UpSampling2D bicubic", "layers.UpSampling2D(2, interpolation='bicubic')", (4, 4, 1),
        ("torch", "openvino"), right=("tensorflow", "jax", "numpy"),
        needs=(("interpolation", "bicubic"),)),
    # OpenVINO drops the NaN on x86_64 only, and then the votes are two against two.
    Bug(17, "MaxPooling2D over NaN", "layers.MaxPooling2D(2)", (4, 4, 1),
        ("tensorflow", "openvino") if _X86 else ("tensorflow",), tied=_X86,
        right=("jax", "torch", "numpy", "openvino"),
        data="np.where(np.arange(16) == 5, np.nan, np.arange(16.0)).reshape(1,4,4,1)"),
)  # fmt: skip

_ALL_REFUSE = "refused by all"
_BUILD = """
import os, sys
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy as np
from keras import layers
keras.utils.set_random_seed(0)
layer, shape, dtype, data, folder = (*sys.argv[1:6],)
made = eval(layer)
made = made if type(made) is list else [made]
model = made[0]
if not isinstance(model, keras.Model):
    model = keras.Sequential([keras.Input(eval(shape), dtype=dtype), *made])
model.save(folder + "/model.keras")
x = eval(data) if data else np.random.default_rng(0).normal(size=(4, *eval(shape)))
np.savez(folder + "/inputs.npz", x=x.astype(dtype))
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    numbers = [0, *(bug.number for bug in BUGS)]
    parser.add_argument("--only", default=",".join(map(str, numbers)))
    parser.add_argument("--bisect", action="store_true")
    options = parser.parse_args()
    wanted = options.only.split(",")
    chosen = sorted((b for b in BUGS if str(b.number) in wanted), key=lambda b: (b.bad, b.fixed))
    tally = dict.fromkeys(("seen", "accused", "gone", "named"), 0)
    with tempfile.TemporaryDirectory() as root, LocalPool([]) as pool:
        for place, bug in enumerate(chosen):
            folder = Path(root, str(bug.number))
            build(bug, folder)
            told = row(pool, bug, folder, options.bisect, tally)
            print(told, flush=True)
            later = {v for b in chosen[place + 1 :][:1] for v in (b.bad, b.fixed)}
            for name in list(pool.targets):
                if not any(name.startswith(f"keras=={v}/") for v in later if v):
                    pool.stop(name)
        if "0" in wanted:
            print(classic(Path(root, "0")), flush=True)
    if not chosen:
        return
    fixed = sum(bool(bug.fixed) for bug in chosen)
    print(
        f"\n{tally['seen']} of {len(chosen)} seen, "
        f"{tally['accused']} with the wrong target accused or the tie told, "
        f"{tally['gone']} of {fixed} gone in the fixed version, "
        f"{tally['named']} fixing releases named by bisect"
    )


def row(pool: Pool, bug: Bug, folder: Path, bisect: bool, tally: dict[str, int]) -> str:
    """What is said of one bug: in its bad version, in its fixed one, and by bisect."""
    began = time.monotonic()
    bad = checked(pool, bug, bug.bad, folder)
    wrong = set() if bug.tied else {named_with(bug.bad, name) for name in bug.wrong}
    seen = bad.verdict == "inconsistent"
    accused = seen and wrong == accused_targets(bad)
    if bug.tied:
        accused &= all("the votes are tied" in finding.reason for finding in bad.findings)
    line = f"{bug.number:>2} {bug.what:40} {'seen' if seen else 'NOT SEEN'}, "
    nobody = "nobody, the votes are tied" if bug.tied and accused else "nobody"
    line += "accused: " + (", ".join(sorted(accused_targets(bad))) or nobody)
    line += "" if accused else f" (expected {', '.join(sorted(wrong))})"
    tally["seen"] += seen
    tally["accused"] += accused
    if bug.fixed:
        told = after(pool, bug, folder)
        tally["gone"] += told in ("consistent", _ALL_REFUSE)
        line += f"; in {bug.fixed} {told}"
    if bisect and bug.start:
        said = bisected(bug, folder)
        tally["named"] += f"fixed in {bug.fixed}" in said
        line += f"; bisect from {bug.start}: {said}"
    titles = [f"\n     {finding.triage}: {finding.title[:150]}" for finding in bad.findings]
    return f"{line} ({time.monotonic() - began:.0f} s)" + "".join(titles)


def after(pool: Pool, bug: Bug, folder: Path) -> str:
    """The verdict in the fixed version; an illegal case is mended when nobody takes it."""
    try:
        return checked(pool, bug, bug.fixed, folder).verdict
    except UsageError as error:
        return _ALL_REFUSE if "no target could run" in str(error) else str(error)


def named_with(version: str, name: str) -> str:
    return f"keras=={version}/{name}" if version else name


def accused_targets(result: Checked) -> set[str]:
    """Targets that findings accuse: those of one library are told in one finding."""
    bugs = [f for f in result.findings if f.accused and f.triage in ("bug", "difference")]
    return {name for finding in bugs for name in finding.targets}


def build(bug: Bug, folder: Path) -> None:
    folder.mkdir(parents=True)
    command = [sys.executable, "-c", _BUILD, bug.layer, repr(bug.shape), bug.dtype, bug.data]
    subprocess.run([*command, str(folder)], check=True, capture_output=True, env=dict(os.environ))


def checked(pool: Pool, bug: Bug, version: str, folder: Path) -> Checked:
    """The wrong targets in one version, beside those that are right, in the same."""
    names = [named_with(version, name) for name in (*bug.wrong, *bug.voters)]
    ready = provide(choose(names, known_targets()))
    for target in (*ready, *helpers(ready)):
        if target.name not in pool.targets:
            pool.add(target)
    with np.load(folder / "inputs.npz") as file:
        data = {"x": file["x"]}
    job = Job(folder / "model.keras", ready, data=data, allow_nan=True, allow_empty=True)
    return check_in(pool, job)


def classic(folder: Path) -> str:
    """The pooling bug of the paper: two versions, two backends, two unique inconsistencies."""
    ramp = "np.arange(16.0).reshape(1, 4, 4, 1)"
    bug = Bug(0, "AveragePooling2D", _POOLING, (4, 4, 1), ("theano",), data=ramp)
    build(bug, folder)
    known = known_targets()
    grid = choose(["keras=={2.1.4,2.1.5}/{theano,tensorflow}", "jax"], known)
    with np.load(folder / "inputs.npz") as file:
        job = Job(folder / "model.keras", tuple(grid), data={"x": file["x"]})
    found = run_check(job)
    result = check_result(found)
    cells = [row[0] for row in result["version_matrix"]["cells"][:2]]
    kinds = {finding.layer.kind for finding in found.findings if finding.layer}
    theano, tensorflow = choose(["theano", "keras==2.1.4/tensorflow"], known)
    search = BisectJob(job.model, theano, (tensorflow,), "keras", "2.1.2", "2.1.6",
                       data=folder / "inputs.npz")  # fmt: skip
    return (
        f" 0 {'CRADLE, AveragePooling2D on Theano':40} {found.verdict}, accused: "
        f"{', '.join(sorted(accused_targets(found)))}; layers: {', '.join(sorted(kinds))}; "
        f"unique in 2.1.4 and 2.1.5: {' and '.join(cells)}; bisect: "
        f"{bisect_result(run_bisect(search))['summary']}"
    )


def bisected(bug: Bug, folder: Path) -> str:
    known = known_targets()
    (target,) = choose([bug.wrong[0]], known)
    job = BisectJob(
        folder / "model.keras",
        target,
        tuple(choose(bug.voters[:1], known)),
        "keras",
        bug.start,
        bug.fixed,
        data=folder / "inputs.npz",
    )
    found = bisect_result(run_bisect(job))
    tried = len(found["bisect"]["releases"])
    return f"{found['summary'].rstrip('.').partition(': ')[2]}, {tried} tried"


if __name__ == "__main__":
    main()
