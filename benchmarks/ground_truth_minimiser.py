"""Findings inside ResNet50, part of ground_truth.py: how small do they get, and how fast?"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from applications import build
from ground_truth_bench import PLANTED, check_model, open_pool, plant
from ground_truth_faults import FAULTS

_PLANTS = ("batchnorm_epsilon", "conv_drops_channels_above_16", "dense_drops_tail_above_256")
_SIZE = 64


def run_minimiser(out: Path) -> None:
    """Plant faults in layers of ResNet50 and print each finding's size before and after."""
    path = build("ResNet50", Path(tempfile.gettempdir()) / "outvote-apps", _SIZE)
    reached: list[dict[str, Any]] = []
    absent = 0
    with open_pool() as pool:
        for fault in (fault for fault in FAULTS if fault.name in _PLANTS):
            began = time.monotonic()
            folder = out / "minimiser" / fault.name
            folder.mkdir(parents=True)
            result = check_model(pool, plant(pool, fault), path, None, folder, count=2)
            seconds = time.monotonic() - began
            size = f"{result['model']['layers']} layers, {result['model']['weights']:,} weights"
            for finding in (f for f in result["findings"] if PLANTED in f["targets"]):
                minimal = finding.get("minimal")
                absent += minimal is None
                reached += [minimal] if minimal else []
                after = (
                    f"{minimal['layers']} layers, {minimal['numbers']} numbers "
                    f"in {minimal['seconds']:.1f} s"
                    if minimal
                    else "absent"
                )
                what = f"{finding['triage']}, {finding['layer_kind']}"
                print(
                    f"{fault.name}: {size} -> {after} ({what}; check {seconds:.0f} s)", flush=True
                )
    if reached:
        medians = {
            key: statistics.median(m[key] for m in reached)
            for key in ("layers", "numbers", "seconds")
        }
        print(f"median after: {medians}")
    print(f"{len(reached)} findings minimised, {absent} without `minimal` in result.json")
