"""Planted faults of gradients, statistics, updates and steps: found, accused, placed, judged?

    python benchmarks/gradient_faults.py                        # every fault
    python benchmarks/gradient_faults.py --only relu_factor,rnn_detached

The faults are in gradient_fault_rows.py, a setup script for each in gradient_faults/. Each is
planted in one target beside two released ones, and shown to `check --train` on a small model. None
may show without `--train`: what the model gives is as it was. Printed for each: found, who is
accused, stage and layer, the verdict; and the reasons, where not all is right.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradient_fault_rows import FAULTS, GradientFault
from ground_truth_bench import BACKENDS, PLANTED, build_cases, check_model, open_pool
from outvote.core.lesson import Lesson
from outvote.core.target import Target
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.pool import Pool


@dataclass(frozen=True)
class GradientScore:
    """What was said of one fault; `quiet`: nothing without training."""

    fault: GradientFault
    findings: tuple[dict[str, Any], ...]
    quiet: bool
    seconds: float

    @property
    def first(self) -> dict[str, Any] | None:
        """The first finding that is about the planted target."""
        about = [f for f in self.findings if PLANTED in f["targets"]]
        return about[0] if about else None

    @property
    def answers(self) -> tuple[bool, bool, bool, bool, bool]:
        """Found, accused, at its place, a bug, and quiet without training."""
        told = self.first
        if told is None:
            return False, False, False, False, self.quiet
        place = (told["stage"], told["layer_kind"] or "") == (self.fault.stage, self.fault.layer)
        only = all(f["accused"] in (PLANTED, None) for f in self.findings)
        return True, told["accused"] == PLANTED and only, place, told["triage"] == "bug", self.quiet

    def line(self) -> str:
        told = self.first or {"stage": "-", "layer_kind": "", "accused": "-", "triage": "-"}
        marks = " ".join("yes" if answer else "NO " for answer in self.answers)
        return (
            f"{self.fault.name:22} {self.fault.target:11} {marks}  {told['stage']:12} "
            f"{told['layer_kind'] or '':22} {told['triage']:10} {self.seconds:4.0f} s"
        )

    def reasons(self) -> list[str]:
        """Why it was said, where not all is right."""
        wrong = not all(self.answers)
        return [f"{f['title']}: {f['reason']}" for f in self.findings if wrong]


def planted_by(fault: GradientFault) -> Target:
    """The target that has the fault."""
    return replace(BUILT_IN[fault.target], name=PLANTED, setup=fault.script)


def scored_gradient(pool: Pool, fault: GradientFault, folder: Path) -> GradientScore:
    """Ask for training and for what the model gives; the planted target is in the pool."""
    others = (BUILT_IN[name] for name in BACKENDS if name != fault.target)
    targets = (pool.targets[PLANTED], *others)
    config = {"config": dict(fault.settings)} if fault.settings else {}
    lesson = Lesson(
        {"class_name": fault.optimizer, **config},
        {"class_name": fault.loss, **_from_logits(fault)} if fault.loss else None,
    )
    model, data = folder / f"{fault.name}.keras", folder / f"{fault.name}.npz"
    began = time.monotonic()
    result = check_model(pool, targets, model, data, folder / fault.name, lesson=lesson)
    found = tuple(f for f in result["findings"] if f["stage"] is not None)
    quiet = len(found) == len(result["findings"])
    return GradientScore(fault, found, quiet, time.monotonic() - began)


def _from_logits(fault: GradientFault) -> dict[str, Any]:
    return {"config": {"from_logits": True}} if "Crossentropy" in fault.loss else {}


def run_gradient_faults(faults: Sequence[GradientFault], folder: Path) -> list[GradientScore]:
    build_cases(faults, folder)
    print(f"{'fault':22} {'planted in':11} found accused place bug quiet")
    scores = []
    with open_pool() as pool:
        for fault in faults:
            pool.add(planted_by(fault))
            scores.append(scored_gradient(pool, fault, folder))
            print(scores[-1].line(), *scores[-1].reasons(), sep="\n    ", flush=True)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="names of faults, with commas between")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        known = {fault.name: fault for fault in FAULTS}
        names = options.only.split(",") if options.only else list(known)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise SystemExit(f"there is no fault {unknown[0]!r}; see gradient_fault_rows.py")
        scores = run_gradient_faults([known[name] for name in names], Path(folder))
    for place, what in enumerate(("found", "accused", "stage and layer", "verdict", "quiet")):
        right = sum(score.answers[place] for score in scores)
        print(f"{what}: {right} of {len(scores)} ({right / len(scores):.0%})")


if __name__ == "__main__":
    main()
