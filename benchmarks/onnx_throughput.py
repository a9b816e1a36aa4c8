"""How many graphs of five nodes a minute go through all targets, each in a process of its own.

    python benchmarks/onnx_throughput.py [--seconds 30] [--targets onnxruntime,opencv]

Every graph is new: five nodes of any operator, drawn, run on every target, compared. Beside the
rate stand the physical limit and where the rest goes. The limit is what a bare loop in one process
takes for the same graphs, with nothing of ours around the runtime: it leaves out those that the
target refuses or dies of, which the rate includes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outvote.bench.sieve import PACK, GraphSieve, SievedPack, answers_of
from outvote.core.batch import cases_in, packed_cases
from outvote.core.target import Outcome
from outvote.dialects.onnx.nouns.batch import DrawGraphs
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.targets.choose import choose

NODES = 5
READER = "onnx-reference"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--targets", default="onnxruntime,opencv,onnx-reference")
    parser.add_argument("--pack", type=int, default=PACK)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bare", nargs=2, metavar=("RUNTIME", "CASES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        print(*bare_loop(*options.bare))
        return
    targets = choose(options.targets.split(","), BUILT_IN)
    names = [target.name for target in targets]
    everyone = {target.name: target for target in (*targets, BUILT_IN[READER])}
    wanted = DrawGraphs(seed=options.seed, first=0, count=options.pack, least=NODES, most=NODES)
    with (
        LocalPool(everyone.values(), jobs=2 * len(names) + 1) as pool,
        GraphSieve(pool, names, READER, wanted) as sieve,
    ):
        done, _ = measure(sieve, names, options.seconds)
        limit(pool, names, done[: max(1, 512 // options.pack)])


def measure(sieve: GraphSieve, names: list[str], seconds: float) -> tuple[list[SievedPack], float]:
    """What came of the packs of so many seconds, and graphs a minute."""
    packs = sieve.packs()
    next(packs)  # imports and first runs are not what is measured
    began, cpu = time.monotonic(), os.times()
    done: list[SievedPack] = []
    while time.monotonic() - began < seconds:
        done.append(next(packs))
    took, after = time.monotonic() - began, os.times()
    tested = sum(pack.tested for pack in done)
    print(f"{60 * tested / took:,.0f} graphs a minute ({tested} in {took:.1f} s)")
    inside = {name: sum(pack.inside[name] for pack in done) for name in names}
    alone = 60 * tested * (os.cpu_count() or 1) / sum(inside.values())
    print(
        f"inside our workers the runtimes take as much as {alone:,.0f} a minute would on "
        f"{os.cpu_count()} processors; reached: {60 * tested / took / alone:.0%}"
    )
    each = {name: 1000 * value / tested for name, value in inside.items()}
    print("ms a graph inside: " + ", ".join(f"{name} {value:.2f}" for name, value in each.items()))
    own = (after.user - cpu.user + after.system - cpu.system) * 1000 / tested
    compared = 1000 * sum(pack.compared for pack in done) / tested
    print(f"ms a graph in the driver: {own:.2f}, of it comparing {compared:.2f}")
    parted, valid = sum(len(pack.parted) for pack in done), sum(pack.valid for pack in done)
    print(f"some target ran {valid / tested:.1%}; to be looked into: {parted / tested:.1%}")
    for name in names:
        counted = sum((pack.outcomes[name] for pack in done), Counter[str]())
        told = ", ".join(f"{word} {count / tested:.1%}" for word, count in counted.most_common())
        print(f"  {name}: {told}")
    return done, 60 * tested / took


def limit(pool: Pool, names: Sequence[str], packs: Sequence[SievedPack]) -> None:
    """What bare loops take for the same graphs, one process after the other."""
    total = 0.0
    count = sum(pack.tested for pack in packs)
    cases = [case for pack in packs for case in cases_in(pack.cases)]
    for name in names:
        answers = answers_of(pool, name, packed_cases(cases), count)
        able = [c for c, a in zip(cases, answers, strict=True) if a.outcome is Outcome.OK]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "cases.npy"
            np.save(file, packed_cases(able))
            command = [sys.executable, __file__, "--bare", pool.targets[name].worker, str(file)]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds, failed = map(float, told.split()[-2:])
        total += seconds
        rate = 60 * len(able) / seconds
        print(f"bare {name}: {rate:,.0f} a minute, of {len(able)} graphs, {failed:.0f} failed")
    most = 60 * count * (os.cpu_count() or 1) / total
    print(f"bare loops on {os.cpu_count()} processors: {most:,.0f} a minute is the physical limit")


def bare_loop(runtime: str, file: str) -> tuple[float, int]:
    """Seconds to load and run every case once, and how many failed without what our workers do."""
    import onnx

    cases = cases_in(np.load(file))
    names = [[i.name for i in onnx.load_from_string(case.content).graph.input] for case in cases]
    run = LOOPS[runtime]()
    began, failed = time.perf_counter(), 0
    for case, given in zip(cases, names, strict=True):
        try:
            run(case.content, dict(zip(given, case.feeds, strict=True)))
        except Exception:
            failed += 1
    return time.perf_counter() - began, failed


Loop = Callable[[bytes, dict[str, Any]], Any]


def _onnxruntime() -> Loop:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4

    def run(proto: bytes, given: dict[str, Any]) -> Any:
        session = ort.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
        return session.run(None, given)

    return run


def _reference() -> Loop:
    from onnx import load_from_string
    from onnx.reference import ReferenceEvaluator

    def run(proto: bytes, given: dict[str, Any]) -> Any:
        with np.errstate(all="ignore"):
            return ReferenceEvaluator(load_from_string(proto)).run(None, given)

    return run


def _opencv() -> Loop:
    import cv2

    cv2.setNumThreads(1)

    def run(proto: bytes, given: dict[str, Any]) -> Any:
        data = np.frombuffer(proto, np.uint8)
        net = cv2.dnn.readNetFromONNX(data, engine=cv2.dnn.ENGINE_NEW)
        for name, array in given.items():
            net.setInput(np.array(array), name)
        return net.forward(net.getUnconnectedOutLayersNames())

    return run


def _openvino() -> Loop:
    import openvino as ov

    core = ov.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}

    def run(proto: bytes, given: dict[str, Any]) -> Any:
        compiled = core.compile_model(core.read_model(proto), "CPU", settings)
        request = compiled.create_infer_request()
        for place, port in enumerate(compiled.inputs):
            names = [*port.get_names(), port.get_node().get_friendly_name()]
            name = next(name for name in names if name in given)
            request.set_input_tensor(place, ov.Tensor(np.array(given[name])))
        request.infer()
        return [np.array(tensor.data) for tensor in request.output_tensors]

    return run


LOOPS: dict[str, Callable[[], Loop]] = {
    "onnxruntime": _onnxruntime,
    "reference": _reference,
    "opencv": _opencv,
    "openvino": _openvino,
}


if __name__ == "__main__":
    main()
