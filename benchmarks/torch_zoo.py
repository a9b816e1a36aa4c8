"""Models of the zoo through every way that PyTorch programs take: do they agree?

python benchmarks/torch_zoo.py
python benchmarks/torch_zoo.py --only vit,unet --targets torch:eager,openvino:torch
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import outvote
from outvote.dialects.torch_export.workers.zoo.models import MODELS

SEED = 5
TARGETS = "torch:eager,torch:inductor,torch:aoti,onnxruntime:torch,openvino:torch"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="models, by commas")
    parser.add_argument("--targets", default=TARGETS)
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(MODELS)
    targets = options.targets.split(",")
    print("| model | calls | verdict | warnings | " + " | ".join(targets[1:]) + " | seconds |")
    print("|---|---|---|---|" + "---|" * len(targets))
    rows = [row(name, targets) for name in names]
    print(f"{sum(rows)} bugs on {len(rows)} models")
    return int(any(rows))


def row(name: str, targets: list[str]) -> int:
    """Prints how far each target is from the first; returns the number of bugs."""
    module, inputs = MODELS[name](SEED)
    began = time.monotonic()
    result = outvote.check(module, inputs, targets=targets).data
    seconds = time.monotonic() - began
    far = [distance(result, targets[0], other) for other in targets[1:]]
    calls = result["model"]["layers"]
    told = [name, calls, result["verdict"], len(result["warnings"]), *far, f"{seconds:.0f}"]
    print(f"| {' | '.join(map(str, told))} |", flush=True)
    bugs = [found for found in result["findings"] if found["triage"] == "bug"]
    for found in bugs:
        print(f"  {found['title']}")
    return len(bugs)


def distance(result: dict[str, Any], first: str, other: str) -> str:
    """The relative distance of two targets, or why there is none."""
    for pair in result["comparisons"]:
        if set(pair["targets"]) == {first, other}:
            found = [m["maximum"] for m in pair["metrics"] if m["name"] == "relative"]
            return "NaN" if None in found else f"{max(found):.1e}"
    runs = {target["name"]: target for target in result["targets"]}
    return str(runs[other]["outcome"])


if __name__ == "__main__":
    raise SystemExit(main())
