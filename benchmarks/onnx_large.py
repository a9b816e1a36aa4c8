"""Large ONNX graphs: what `check` costs beside bare sessions, localisation, memory of the driver.

    python benchmarks/onnx_large.py                      # all three, some minutes
    python benchmarks/onnx_large.py --only time          # 500 nodes on three runtimes
    python benchmarks/onnx_large.py --only localisation  # 5,000 nodes, a planted fault
    python benchmarks/onnx_large.py --only memory        # 2 GB of weights in external data

time: bare sessions (a process each, import, load, run with one thread, as many at a time as there
are cores), then `check` of the same inputs on the same runtimes; prints wall times and their ratio.
localisation: seconds from the first difference to the node, and the size of report.html. memory:
the peak of the driver's process alone, beside the size of the model.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from check import Phases
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import run_check
from outvote.commands.record import written
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.findings.gate import Gate

TARGETS = ("onnxruntime", "openvino:onnx", "opencv")
FAULT = Path(__file__).parent / "onnx_large_fault.py"
_CHANNELS, _SIZE = 16, 24
_BARE = """
import sys
import numpy as np
name, path, data = sys.argv[1:]
x = np.load(data)["x"]
if name == "onnxruntime":
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    for start in range(0, len(x), 32):
        session.run(None, {"x": x[start : start + 32]})
elif name == "openvino:onnx":
    import openvino
    core = openvino.Core()
    read = core.read_model(path)
    read.reshape([min(32, len(x)), *x.shape[1:]])
    compiled = core.compile_model(
        read, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    )
    for start in range(0, len(x), 32):
        compiled([x[start : start + 32]])
else:
    import cv2
    cv2.setNumThreads(1)
    net = cv2.dnn.readNetFromONNX(path)
    for start in range(0, len(x), 32):
        net.setInput(x[start : start + 32], "x")
        net.forward()
"""
_DRIVER = """
import json, resource, sys
from outvote.cli import main
code = main(sys.argv[1:])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # children do not count
print(json.dumps({"code": code, "peak": peak}))
"""


def network(nodes: int, channels: int = _CHANNELS) -> Any:
    """Residual blocks of Conv, Softsign, Sin, Mul, Add one after the other; in the middle an Elu.

    A block adds little, so that a thousand of them neither forget the input nor amplify rounding.
    """
    rng = np.random.default_rng(0)
    made: list[Any] = []
    constants: list[Any] = []

    def add(kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}_{len(made)}"
        made.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(array: Any) -> str:
        name = f"w{len(constants)}"
        constants.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    scale = constant(0.02)
    last = "x"
    while len(made) < nodes - 3:
        kernel = constant(rng.normal(size=(channels, channels, 3, 3)) / np.sqrt(9 * channels))
        found = add("Conv", last, kernel, pads=[1, 1, 1, 1])
        in_the_middle = abs(len(made) - nodes // 2) < 3
        found = add("Elu", found, alpha=0.5) if in_the_middle else add("Softsign", found)
        found = add("Sin", found)
        found = add("Mul", found, scale)
        last = add("Add", found, last)
    while len(made) < nodes - 2:
        last = add("Sin", last)
    pooled = add("GlobalAveragePool", last)
    flat = add("Flatten", pooled)
    inputs = [helper.make_tensor_value_info("x", 1, ["batch", channels, _SIZE, _SIZE])]
    outputs = [helper.make_tensor_value_info(flat, 1, ["batch", channels])]
    graph = helper.make_graph(made, "large", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def bare(path: Path, data: Path) -> float:
    """Wall time of bare sessions, side by side."""

    def one(name: str) -> None:
        command = [sys.executable, "-c", _BARE, name, str(path), str(data)]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})

    began = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(one, TARGETS))
    return time.monotonic() - began


def measure_time(folder: Path, inputs: int) -> None:
    path, data = folder / "n500.onnx", folder / "n500.npz"
    onnx.save(network(500), str(path))
    rng = np.random.default_rng(0)
    np.savez(data, x=rng.normal(size=(inputs, _CHANNELS, _SIZE, _SIZE)).astype(np.float32))
    told = []
    for _ in range(2):  # the second time, files are in the system's memory for both
        phases = Phases()
        alone = bare(path, data)
        began = time.monotonic()
        checked = run_check(Job(path, tuple(BUILT_IN[n] for n in TARGETS), data=data), phases)
        total = time.monotonic() - began
        told.append(total / alone)
        print(f"500 nodes, {inputs} inputs, {', '.join(TARGETS)}: {checked.verdict}")
        print(f"  bare sessions {alone:.2f} s, check {total:.2f} s")
        print(f"  phases: {', '.join(f'{k} {v:.2f}' for k, v in phases.seconds.items())} s")
    print(f"  RATIO of wall times: {min(told):.2f}", flush=True)


def measure_localisation(folder: Path) -> None:
    path = folder / "n5000.onnx"
    onnx.save(network(5000, channels=4), str(path))
    planted = replace(BUILT_IN["onnx-reference"], name="planted", library="planted", setup=FAULT)
    names = ("onnxruntime", "opencv", "onnx-reference")
    targets = (*(BUILT_IN[name] for name in names), planted)
    phases = Phases()
    began = time.monotonic()
    report = folder / "report"
    report.mkdir(exist_ok=True)
    checked = run_check(Job(path, targets, count=2, minimise=0), phases)
    total = time.monotonic() - began
    first = next((f for f in checked.findings if f.layer), None)
    named = f"{first.accused}, {first.layer.name}" if first and first.layer else "nothing"
    began = time.monotonic()
    written(check_result(checked), report, Gate())
    print(f"5,000 nodes, a fault in the one Elu: {checked.verdict}; accused {named}")
    print(f"  LOCALISATION: {phases.seconds.get('Localising', 0):.1f} s of {total:.1f} s")
    print(f"  phases: {', '.join(f'{k} {v:.1f}' for k, v in phases.seconds.items())} s")
    size = (report / "report.html").stat().st_size
    seconds = time.monotonic() - began
    print(f"  report.html: {size / 1e6:.1f} MB in {seconds:.1f} s, {report}", flush=True)


def large_file(folder: Path, gigabytes: float) -> tuple[Path, int]:
    """Products of matrices whose weights lie beside the model; nothing is held while writing."""
    width = 4096
    count = round(gigabytes * 2**30 / (4 * width * width))
    rng = np.random.default_rng(0)
    nodes, tensors = [], []
    with (folder / "weights.bin").open("wb") as file:
        for i in range(count):
            weight = rng.standard_normal((width, width), np.float32) / np.sqrt(np.float32(width))
            tensor = TensorProto(name=f"w{i}", dims=[width, width], data_type=TensorProto.FLOAT)
            tensor.data_location = TensorProto.EXTERNAL
            told = {"location": "weights.bin", "offset": file.tell(), "length": weight.nbytes}
            for key, value in told.items():
                tensor.external_data.add(key=key, value=str(value))
            file.write(weight.data)
            tensors.append(tensor)
            nodes.append(helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"], f"mm{i}"))
    inputs = [helper.make_tensor_value_info("t0", 1, ["batch", width])]
    outputs = [helper.make_tensor_value_info(f"t{count}", 1, ["batch", width])]
    graph = helper.make_graph(nodes, "heavy", inputs, outputs, tensors)
    path = folder / "heavy.onnx"
    path.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )
    return path, path.stat().st_size + (folder / "weights.bin").stat().st_size


def measure_memory(folder: Path, gigabytes: float) -> None:
    path, size = large_file(folder, gigabytes)
    out = str(folder / "heavy-out")
    targets = ["--targets", "onnxruntime,onnxruntime:all", "--count", "2", "--jobs", "1"]
    command = [sys.executable, "-c", _DRIVER, "check", str(path), *targets, "--out", out, "--quiet"]
    began = time.monotonic()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"{size / 2**30:.2f} GiB of external data: exit code {found['code']}")
    print(f"  took {time.monotonic() - began:.0f} s; peak of the driver {found['peak'] >> 20} MiB")
    print(f"  RATIO to the model's size: {found['peak'] / size:.2f}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=("time", "localisation", "memory"))
    parser.add_argument("--inputs", type=int, default=64)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--folder", type=Path, help="where models and report are kept")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        parts: dict[str, Callable[[], None]] = {
            "time": lambda: measure_time(folder, options.inputs),
            "localisation": lambda: measure_localisation(folder),
            "memory": lambda: measure_memory(folder, options.gigabytes),
        }
        for name, part in parts.items():
            if options.only in (None, name):
                part()


if __name__ == "__main__":
    main()
