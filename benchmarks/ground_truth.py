"""Planted faults as ground truth: are they found, is the right one accused, in the right layer?

    python benchmarks/ground_truth.py                       # every fault
    python benchmarks/ground_truth.py --self-test           # does every plant change anything?
    python benchmarks/ground_truth.py --only lstm_gate_order,jit_tanh
    python benchmarks/ground_truth.py --family geometry
    python benchmarks/ground_truth.py --clean               # false bugs: zoo, keras.applications
    python benchmarks/ground_truth.py --clean --oracle metamorphic --targets torch
    python benchmarks/ground_truth.py --rounding 500        # false bugs: random deep models
    python benchmarks/ground_truth.py --minimiser           # findings inside ResNet50

The faults are in ground_truth_faults.py, a setup script for each in ground_truth/. Each is planted
in one target beside two released ones, and exposed by `check` on a small model, or by a campaign
of `fuzz --strategy layers` from tiny seeds. Printed for each: found, who is accused, which layer
stands first, the verdict, the length of the repro. Controls are no faults: none may be a bug.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ground_truth_bench import (
    BACKENDS,
    PLANTED,
    build_cases,
    check_model,
    effect,
    is_place,
    open_pool,
    plant,
    run_campaign,
    shows,
)
from ground_truth_faults import FAULTS, Fault
from outvote.run.pool import Pool


@dataclass(frozen=True)
class Score:
    """What was said of one fault."""

    fault: Fault
    effect: str
    finding: dict[str, Any] | None  # the first that involves the planted target
    found: bool
    layer_first: bool
    repro_lines: int | None
    seconds: float
    more: str = ""

    @property
    def accused(self) -> str | None:
        return self.finding["accused"] if self.finding else None

    @property
    def verdict(self) -> str:
        return str(self.finding["triage"]) if self.finding else ""

    @property
    def right_verdict(self) -> bool:
        return self.verdict == self.fault.verdict

    def line(self) -> str:
        fault, told = self.fault, self.finding
        said = f"{told['layer_kind']}, {told['kind']}" if told else "-"
        repro = f"{self.repro_lines} lines" if self.repro_lines else "no repro"
        how = "fuzz" if fault.campaign else "check"
        return (
            f"{fault.name:30} {fault.target:17} {how:5} {self.effect:>8} "
            f"{'found' if self.found else 'MISSED' if fault.verdict else 'quiet':6} "
            f"{_mark(self.accused == PLANTED)} {_mark(self.layer_first)} "
            f"{self.verdict or '-':10} {said:34} {repro:9} {self.seconds:5.0f} s {self.more}"
        )


def _mark(right: bool) -> str:
    return "yes" if right else "no "


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="names of faults, with commas between")
    parser.add_argument("--family", help="faults of one family")
    parser.add_argument("--checks", action="store_true", help="leave out the campaigns")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--clean", action="store_true")
    parser.add_argument("--rounding", type=int, metavar="N")
    parser.add_argument("--first", type=int, default=1, help="for --rounding: the first number")
    parser.add_argument("--minimiser", action="store_true")
    parser.add_argument("--oracle", default="", help="for --clean: metamorphic")
    parser.add_argument("--targets", help="for --clean: instead of the released ones")
    parser.add_argument("--models", help="for --clean: names, with commas between")
    parser.add_argument("--out", type=Path, help="keep findings and reports there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = options.out or Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        if options.clean:
            from ground_truth_clean import run_clean

            names = options.models.split(",") if options.models else None
            targets = options.targets.split(",") if options.targets else BACKENDS
            run_clean(out, names, options.oracle, targets)
        elif options.rounding is not None:
            from ground_truth_rounding import run_rounding

            run_rounding(options.rounding, options.first)
        elif options.minimiser:
            from ground_truth_minimiser import run_minimiser

            run_minimiser(out)
        else:
            run_faults(_chosen(options), out, options.self_test)


def _chosen(options: argparse.Namespace) -> list[Fault]:
    known = {fault.name: fault for fault in FAULTS}
    names = options.only.split(",") if options.only else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"there is no fault {unknown[0]!r}; see benchmarks/ground_truth_faults.py")
    chosen = [known[name] for name in names if options.family in (None, known[name].family)]
    chosen = [fault for fault in chosen if fault.backend in BACKENDS]
    return [f for f in chosen if not (options.checks and f.campaign)]


def run_faults(faults: Sequence[Fault], out: Path, self_test: bool) -> None:
    began = time.monotonic()
    build_cases(faults, out)
    scores: list[Score] = []
    with open_pool() as pool:
        for place, fault in enumerate(faults):
            score = tried(pool, fault, out) if self_test else scored(pool, fault, out)
            scores.append(score)
            left = (time.monotonic() - began) / (place + 1) * (len(faults) - place - 1)
            print(f"{score.line()}  [{left / 60:.0f} min left]", flush=True)
    idle = [score.fault.name for score in scores if not score.effect]
    if idle:
        raise SystemExit(f"plants without effect: {', '.join(idle)}")
    if self_test:
        print(f"all {len(scores)} plants have an effect ({time.monotonic() - began:.0f} s)")
    else:
        print_totals(scores, time.monotonic() - began)


def tried(pool: Pool, fault: Fault, out: Path) -> Score:
    """The self-test: what the plant does to its own case."""
    began = time.monotonic()
    plant(pool, fault)
    seen = effect(pool, fault, out)
    return Score(fault, seen, None, False, False, None, time.monotonic() - began)


def scored(pool: Pool, fault: Fault, out: Path) -> Score:
    """The plant's effect, then what `check` or a campaign says of it."""
    targets = plant(pool, fault)
    seen = effect(pool, fault, out)
    began = time.monotonic()
    folder = out / "runs" / fault.name
    if fault.campaign:
        result = run_campaign(pool, targets, fault, folder)
        involved = [f for f in result["findings"] if shows(fault, f)]
        more = f"{result['tested']} mutants"
    else:
        folder.mkdir(parents=True)
        model, data = out / f"{fault.name}.keras", out / f"{fault.name}.npz"
        result = check_model(pool, targets, model, data, folder)
        involved = [f for f in result["findings"] if PLANTED in f["targets"]]
        more = ""
    seconds = time.monotonic() - began
    told = involved[0] if involved else None
    others = len(result["findings"]) - bool(told)
    return Score(
        fault,
        seen,
        told,
        told is not None and told["triage"] != "precision",
        told is not None and is_place(fault, told if fault.campaign else result["findings"][0]),
        _lines(folder, told),
        seconds,
        ", ".join(filter(None, [more, f"{others} more findings" if others else ""])),
    )


def _lines(folder: Path, finding: dict[str, Any] | None) -> int | None:
    if finding is None or not finding["repro"]:
        return None
    return len((folder / finding["repro"]).read_text(encoding="utf-8").splitlines())


def print_totals(scores: Sequence[Score], seconds: float) -> None:
    planted = [score for score in scores if not score.fault.is_control]
    found = [score for score in planted if score.found]
    decided = [score for score in found if score.accused is not None]
    lines = [score.repro_lines for score in found if score.repro_lines]
    false = [s.fault.name for s in scores if s.fault.is_control and s.verdict == "bug"]
    controls = len(scores) - len(planted)
    print(f"\n{len(planted)} planted faults, {controls} controls ({seconds / 60:.1f} min)")
    print(_share("recall", len(found), len(planted)))
    print(_share("decided", len(decided), len(found)))
    right = sum(score.accused == PLANTED for score in decided)
    print(_share("right target accused, of those decided", right, len(decided)))
    print(_share("right layer first", sum(s.layer_first for s in found), len(found)))
    print(_share("right verdict", sum(s.right_verdict for s in found), len(found)))
    kinds = sum(s.finding is not None and s.finding["kind"] == s.fault.kind for s in found)
    print(_share("right kind of finding", kinds, len(found)))
    print(f"repros: {len(lines)}; median length {statistics.median(lines or [0]):.0f} lines")
    print(f"controls called a bug: {len(false)} of {controls} {' '.join(false)}")
    for score in planted:
        if not score.found:
            told = score.finding["title"] if score.finding else "nothing was said"
            print(f"missed: {score.fault.name}: {told}")


def _share(what: str, part: int, whole: int) -> str:
    return f"{what}: {part} of {whole} ({part / whole:.1%})" if whole else f"{what}: none"


if __name__ == "__main__":
    main()
