"""How long `outvote.check(module, x)` takes for ResNet-50, beside what it cannot do without.

    python benchmarks/torch_check.py            # three times each, in turn

Bare: the module exported once, converted for ONNX Runtime and for OpenVINO, and one forward pass
each of PyTorch, ONNX Runtime and OpenVINO, one after the other, in a process of its own that has
imported them before the clock starts. `check` starts three workers, which import them too.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

import numpy as np
import torch

import outvote
from outvote.dialects.torch_export.workers.zoo.models import ResNet

TARGETS = ("torch:eager", "onnxruntime:torch", "openvino:torch")


def resnet50() -> torch.nn.Module:
    torch.manual_seed(0)
    return ResNet((3, 4, 6, 3), 64, 1000).eval()


def picture(count: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, 3, 224, 224)).astype(np.float32)


def bare(count: int) -> dict[str, float]:
    """Seconds for each step."""
    import onnxruntime as ort
    import onnxscript  # noqa: F401 - PyTorch imports it when it exports
    import openvino as ov

    module, x = resnet50(), torch.from_numpy(picture(count))
    torch.set_num_threads(1)
    clock = Clock()
    with torch.no_grad():
        program = torch.export.export(module, (x,))
        clock("torch.export")
        module(x)
        clock("forward of PyTorch")
        proto = torch.onnx.export(program, dynamo=True, verbose=False).model_proto
        clock("to ONNX")
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(proto.SerializeToString(), options)
        session.run(None, {session.get_inputs()[0].name: x.numpy()})
        clock("forward of ONNX Runtime")
        compiled = ov.compile_model(ov.convert_model(program), "CPU", {"INFERENCE_NUM_THREADS": 1})
        clock("to OpenVINO")
        compiled([x.numpy()])
        clock("forward of OpenVINO")
    return clock.seconds


class Clock:
    """Seconds since it was read last, by what was done."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def __call__(self, what: str) -> None:
        now = time.monotonic()
        self.seconds[what] = now - self._last
        self._last = now


def checked(count: int) -> float:
    module, x = resnet50(), picture(count)
    began = time.monotonic()
    result = outvote.check(module, x, targets=list(TARGETS))
    seconds = time.monotonic() - began
    if result.data["verdict"] != "consistent":
        raise SystemExit(f"{result.data['verdict']}: {result.data['findings']}")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--count", type=int, default=2, help="pictures (%(default)s)")
    parser.add_argument("--bare", action="store_true", help="the steps alone, once")
    options = parser.parse_args()
    if options.bare:
        found = bare(options.count)
        print(" ".join(f"{seconds:.3f}" for seconds in (sum(found.values()), *found.values())))
        print("; ".join(f"{what} {seconds:.1f} s" for what, seconds in found.items()))
        return
    whole, alone = [], []
    for _ in range(options.times):
        command = [sys.executable, __file__, "--bare", "--count", str(options.count)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        *_, figures, told = done.stdout.strip().splitlines()
        alone.append(float(figures.split()[0]))
        whole.append(checked(options.count))
        print(f"bare {alone[-1]:.1f} s ({told}), check {whole[-1]:.1f} s", flush=True)
    ratio = statistics.median(whole) / statistics.median(alone)
    print(f"check takes {ratio:.2f} times as long as the bare steps (medians of {options.times})")


if __name__ == "__main__":
    main()
