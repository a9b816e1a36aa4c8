"""Faults planted in PyTorch and its converters: found, the right one accused, the line named?

    python benchmarks/torch_faults.py                        # every fault
    python benchmarks/torch_faults.py --only relu_leaks,gelu_is_relu
    python benchmarks/torch_faults.py --family quantiser
    python benchmarks/torch_faults.py --shard 1/4           # every fourth, for four processes

The faults are in torch_fault_rows.py. Each is planted in one target beside the released ones, and
exposed by `check` on a small network. Printed for each: found, whether it is the accused, whether
the operator and the line of the source are named, the verdict, and the smallest program.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from ground_truth_bench import PLANTED
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.core.protocol import RunModel
from outvote.core.target import Target
from outvote.dialects.torch_export.targets import BUILT_IN
from outvote.findings.finding import Finding
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled
from outvote.targets.choose import missing_packages
from torch_fault_rows import FAULTS, PLANTS, Net, TorchFault, guilty_line

_OTHERS = ("torch:eager", "openvino:torch", "onnxruntime:torch")  # two of these outvote a third
_MINIMISE = 4.0  # seconds
_LINE = re.compile(r"guilty.* \(torch_fault_rows\.py:(\d+)\)")


@dataclass(frozen=True)
class TorchScore:
    """What was said of one fault."""

    fault: TorchFault
    told: Finding | None
    line: bool  # whether the module and the line of the source are named
    seconds: float

    @property
    def marks(self) -> dict[str, bool]:
        told, layer = self.told, self.told.layer if self.told else None
        return {
            "found": told is not None and told.triage != "precision",
            "the planted target accused": told is not None and told.accused == PLANTED,
            "the operator named": layer is not None and layer.kind == self.fault.operator,
            "the line named": self.line,
            "smallest program: that operator alone": self.smallest == [self.fault.operator],
            "right kind of finding": told is not None and told.kind == self.fault.kind,
            "called a bug": told is not None and told.triage == "bug",
        }

    @property
    def smallest(self) -> list[str]:
        proof = self.told.proof if self.told else None
        return [layer.kind for layer in proof.specimen.model.layers] if proof else []

    @property
    def is_right(self) -> bool:
        return all(self.marks.values())

    @property
    def title(self) -> str:
        return self.told.title if self.told else "nothing was said"

    def row(self) -> str:
        told = " ".join("yes" if mark else "NO " for mark in self.marks.values())
        place = f"{self.fault.name:30} {self.fault.target:18}"
        return f"{place} {told} {' → '.join(self.smallest)[:40]:40} {self.seconds:5.1f} s"


def installed(faults: Sequence[TorchFault] = FAULTS) -> list[TorchFault]:
    """Those whose target is installed here, and two that can outvote it; a twin needs none."""
    here = {name for name, target in BUILT_IN.items() if not missing_packages(target)}
    return [
        fault
        for fault in faults
        if fault.target in here
        and (BUILT_IN[fault.target].original or len(here & set(_OTHERS) - {fault.target}) > 1)
    ]


def open_pool(faults: Sequence[TorchFault]) -> LocalPool:
    held = dict.fromkeys((*_OTHERS, *(fault.target for fault in faults)))
    return LocalPool([BUILT_IN[name] for name in held if not missing_packages(BUILT_IN[name])])


def plant(pool: Pool, fault: TorchFault) -> tuple[Target, ...]:
    """A fresh worker with the fault; all targets that take part."""
    released = BUILT_IN[fault.target]
    planted = replace(released, name=PLANTED, setup=PLANTS, env={"FAULT": fault.name})
    pool.add(planted)
    if released.original:
        return (planted, BUILT_IN[released.original])
    others = [pool.targets[n] for n in _OTHERS if n in pool.targets and n != fault.target]
    return (planted, *others[:2])


def scored(pool: Pool, fault: TorchFault, folder: Path) -> TorchScore:
    """What `check` says of a fault."""
    folder.mkdir(parents=True)
    net, x = fault.case()
    path = folder / "model.pt2"
    free = ({0: torch.export.Dim("n")},)
    torch.export.save(torch.export.export(net, (torch.from_numpy(x),), dynamic_shapes=free), path)
    targets = plant(pool, fault)
    began = time.monotonic()
    checked = check_in(pool, Job(path, targets, data={"x": x}, minimise=_MINIMISE), out=folder)
    require_change(pool, fault, checked)
    told = [f for f in checked.findings if PLANTED in f.targets]
    told.sort(key=lambda f: f.triage != "bug")
    first = next(iter(told), None)
    return TorchScore(fault, first, names_line(first, net), time.monotonic() - began)


def names_line(told: Finding | None, net: Net) -> bool:
    found = _LINE.fullmatch(told.layer.name) if told and told.layer else None
    return found is not None and int(found[1]) == guilty_line(net)


def require_change(pool: Pool, fault: TorchFault, checked: Checked) -> None:
    """A plant that changes nothing on its network would measure nothing: that is an error here."""
    if not checked.runs[PLANTED].ok:
        return
    case = checked.case
    inputs = tuple(pool.blobs.put(array) for array in case.data.inputs)
    request = RunModel(model=case.model, inputs=inputs, batch=1 << 20)
    released = ask_settled(pool, fault.target, request)
    pairs = zip(released.reply.outputs.arrays, checked.outputs[PLANTED].arrays, strict=True)
    if all(a.shape == b.shape and np.array_equal(a, b, equal_nan=True) for a, b in pairs):
        raise SystemExit(f"{fault.name} changes nothing on its network: it measures nothing")


def run_faults(faults: Sequence[TorchFault], out: Path) -> list[TorchScore]:
    began = time.monotonic()
    scores = []
    marks = "found who operator line small kind bug"
    print(f"{'fault':30} {'planted in':18} {marks}: yes or NO, in this order", flush=True)
    with open_pool(faults) as pool:
        for fault in faults:
            scores.append(scored(pool, fault, out / fault.name))
            print(scores[-1].row(), flush=True)
    print(f"\n{len(scores)} planted faults ({(time.monotonic() - began) / 60:.1f} min)")
    for what in scores[0].marks:
        print(f"{what}: {sum(score.marks[what] for score in scores)} of {len(scores)}")
    for score in scores:
        if not score.is_right:
            print(f"not right: {score.fault.name}: {score.title}")
    return scores


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="names of faults, with commas between")
    parser.add_argument("--family", help="faults of one family")
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="the I-th of N parts")
    parser.add_argument("--out", type=Path, help="keep findings there")
    options = parser.parse_args()
    part, parts = map(int, options.shard.split("/"))
    chosen = _chosen(options.only, options.family)[part - 1 :: parts]
    absent = [fault.target for fault in chosen if fault not in installed(chosen)]
    if absent:
        raise SystemExit(
            f"{absent[0]} or two others are not installed; `outvote targets` says how to get them"
        )
    with tempfile.TemporaryDirectory() as scratch:
        scores = run_faults(chosen, options.out or Path(scratch))
    return int(not all(score.is_right for score in scores))


def _chosen(only: str | None, family: str | None) -> list[TorchFault]:
    known = {fault.name: fault for fault in FAULTS}
    names = only.split(",") if only else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"there is no fault {unknown[0]!r}; see benchmarks/torch_fault_rows.py")
    return [known[name] for name in names if family in (None, known[name].family)]


if __name__ == "__main__":
    raise SystemExit(main())
