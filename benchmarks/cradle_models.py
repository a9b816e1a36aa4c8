"""CRADLE's 13 ImageNet models end to end, clean and with planted faults.

    python benchmarks/cradle_models.py                 # clean, on four targets
    python benchmarks/cradle_models.py --faults        # four faults in three backends
    python benchmarks/cradle_models.py VGG16 MobileNet # some models only

Prints per model: layers, seconds, peak memory of the workers, verdict; per fault whether it was
detected, who was accused, and which layer was named first.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from dataclasses import replace
from pathlib import Path

from applications import NAMES, build
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.run import run_check
from outvote.core.target import Target
from outvote.dialects.keras.targets import BUILT_IN

CLEAN = ("tensorflow", "jax", "torch", "openvino")
BACKENDS = ("tensorflow", "jax", "torch")
FAULTS_FOLDER = Path(__file__).parent.parent / "examples" / "faults"
# fault -> models that contain the layer, the kind that must be named first, spread of the logits
FAULTS = {
    "batchnorm_epsilon": (("MobileNetV2", "ResNet50"), "BatchNormalization", 3.0),
    "average_pool_counts_padding": (
        ("InceptionV3", "InceptionResNetV2"),
        "AveragePooling2D",
        3.0,
    ),
    "same_padding_wrong_side": (("MobileNet", "MobileNetV2"), "Conv2D", 3.0),
    "softmax_overflow": (("VGG16", "MobileNetV2"), "Dense", 100.0),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=NAMES)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--only", choices=list(FAULTS))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "outvote-apps")
    options = parser.parse_args()
    if options.faults:
        run_faults(options.folder, [options.only] if options.only else list(FAULTS))
    else:
        run_clean(options.folder, options.models)


def run_clean(folder: Path, names: list[str]) -> None:
    targets = tuple(BUILT_IN[name] for name in CLEAN)
    print(f"{'model':20} {'layers':>6} {'seconds':>8} {'workers MiB':>12}  verdict")
    bugs = 0
    for name in names:
        checked = run_check(Job(build(name, folder), targets, count=2))
        bugs += sum(finding.triage == "bug" for finding in checked.findings)
        assert checked.case is not None
        layers, peak = len(checked.case.model.layers), max(checked.peaks.values()) >> 20
        told = f"{checked.verdict} {_largest(checked)}"
        print(
            f"{name:20} {layers:6} {checked.seconds:8.1f} {peak:12}  {told}",
            flush=True,
        )
        for finding in checked.findings:
            print(f"    {finding.triage}: {finding.title}", flush=True)
    driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"findings called a bug: {bugs}; peak memory of the driver: {driver} MiB")


def _largest(checked: Checked) -> str:
    found = [m.maximum for pair in checked.comparisons for m in pair.measured]
    noise = f", noise {checked.noise.largest():.1e}" if checked.noise else ""
    return f"(largest relative distance {max(found):.1e}{noise})" if found else ""


def run_faults(folder: Path, faults: list[str]) -> None:
    print(f"{'fault':28} {'in':11} {'model':18} {'seconds':>7}  accused / first layer  right?")
    right = total = 0
    for fault in faults:
        models, kind, spread = FAULTS[fault]
        for name in models:
            path = build(name, folder, logit_spread=spread)
            for backend in BACKENDS:
                checked = run_check(Job(path, _planted(fault, backend), count=2))
                good = _is_right(checked, kind)
                right, total = right + good, total + 1
                first = checked.findings[0] if checked.findings else None
                layer = first.layer if first else None
                told = f"{first.accused} / {layer.kind if layer else None}" if first else "missed"
                print(
                    f"{fault:28} {backend:11} {name:18} {checked.seconds:7.1f}  {told:30} "
                    f"{'yes' if good else 'NO'}",
                    flush=True,
                )
    print(f"detected, right target accused, right layer first: {right} of {total}")


def _planted(fault: str, backend: str) -> tuple[Target, ...]:
    script = FAULTS_FOLDER / f"{fault}.py"
    return tuple(
        replace(BUILT_IN[name], name="planted", setup=script) if name == backend else BUILT_IN[name]
        for name in BACKENDS
    )


def _is_right(checked: Checked, kind: str) -> bool:
    if not checked.findings:
        return False
    first = checked.findings[0]
    return (
        first.accused == "planted"
        and first.layer is not None
        and first.layer.kind == kind
        and first.triage == "bug"
        and len(checked.findings) == 1
    )


if __name__ == "__main__":
    main()
