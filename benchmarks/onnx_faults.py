"""Faults planted in runtimes of ONNX graphs: found, the right one accused, the right node named?

    python benchmarks/onnx_faults.py                        # every fault
    python benchmarks/onnx_faults.py --only lrn_beta,free_elu
    python benchmarks/onnx_faults.py --family fusion
    python benchmarks/onnx_faults.py --clean [FOLDER ...]   # false bugs: zoo exported, your files

The faults are in onnx_fault_rows.py. Each is planted in one target beside the released ones, and
exposed by `check` on a small network. Printed for each: found, whether it is the accused, whether
the node is named, the verdict, and the nodes of the smallest graph.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from ground_truth_bench import PLANTED
from onnx_fault_rows import FAULTS, PLANTS, OnnxFault
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.core.protocol import RunModel
from outvote.core.target import Target
from outvote.dialects.onnx.targets import BUILT_IN, DEFAULT
from outvote.findings.finding import Finding
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.process import Limits
from outvote.run.settle import ask_settled

_COUNT = 4
LIMITS = Limits(silence_seconds=20.0)  # one fault hangs on purpose


@dataclass(frozen=True)
class OnnxScore:
    """What was said of one fault."""

    name: str
    family: str
    target: str
    found: bool
    accused: bool
    node: bool  # whether the operator is named
    small: bool  # whether the smallest graph has these nodes and no more
    kind: bool
    verdict: str
    nodes: str
    seconds: float
    title: str

    @property
    def is_right(self) -> bool:
        told = self.found, self.accused, self.node, self.small, self.kind
        return all(told) and self.verdict == "bug"

    def line(self) -> str:
        marks = [self.accused, self.node, self.small, self.kind]
        told = " ".join("yes" if mark else "NO " for mark in marks)
        found = "found " if self.found else "MISSED"
        return (
            f"{self.name:31} {self.target:21} {found} {told} {self.verdict:10} "
            f"{self.nodes:32} {self.seconds:5.1f} s"
        )


HEAD = f"{'fault':31} {'planted in':21} found  who node small kind verdict    smallest graph"


def open_pool() -> LocalPool:
    held = dict.fromkeys((*DEFAULT, *(fault.target for fault in FAULTS)))
    return LocalPool([BUILT_IN[name] for name in held], limits=LIMITS)


def plant(pool: Pool, fault: OnnxFault) -> tuple[Target, ...]:
    """A fresh worker with the fault; all targets that take part."""
    released = BUILT_IN[fault.target]
    env = {"FAULT": fault.name, "FAULTY": released.worker}
    planted = replace(released, name=PLANTED, setup=PLANTS, env={**released.env, **env})
    pool.add(planted)
    others = [BUILT_IN[name] for name in DEFAULT if BUILT_IN[name].library != released.library]
    return (planted, *others)


def write_case(fault: OnnxFault, folder: Path) -> tuple[Path, Path]:
    """The model and its inputs, as files."""
    proto = fault.graph()
    onnx.checker.check_model(proto, full_check=True)
    given = proto.graph.input[0]
    dims = given.type.tensor_type.shape.dim[1:]
    x = np.random.default_rng(0).normal(size=(_COUNT, *(dim.dim_value for dim in dims)))
    if fault.nan:
        x.reshape(_COUNT, -1)[:, 1] = np.nan
    model, data = folder / "model.onnx", folder / "inputs.npz"
    model.write_bytes(proto.SerializeToString())
    np.savez(data, allow_pickle=False, **{given.name: x.astype(np.float32)})
    return model, data


def scored(pool: Pool, fault: OnnxFault, folder: Path) -> OnnxScore:
    """What `check` says of a fault."""
    folder.mkdir(parents=True)
    model, data = write_case(fault, folder)
    targets = plant(pool, fault)
    began = time.monotonic()
    job = Job(model, targets, data=data, allow_nan=fault.nan, limits=LIMITS)
    checked = check_in(pool, job, out=folder)
    require_change(pool, fault, checked)
    told = [f for f in checked.findings if PLANTED in f.targets]
    told.sort(key=lambda f: f.triage != "bug")
    return _score(fault, next(iter(told), None), time.monotonic() - began)


def require_change(pool: Pool, fault: OnnxFault, checked: Checked) -> None:
    """A plant that changes nothing on its graph would measure nothing: that is an error here."""
    if not checked.runs[PLANTED].ok:
        return
    case = checked.case
    inputs = tuple(pool.blobs.put(array) for array in case.data.inputs)
    request = RunModel(model=case.model, inputs=inputs, batch=1 << 20)
    released = ask_settled(pool, fault.target, request)
    pairs = zip(released.reply.outputs.arrays, checked.outputs[PLANTED].arrays, strict=True)
    if all(a.shape == b.shape and np.array_equal(a, b, equal_nan=True) for a, b in pairs):
        raise SystemExit(f"{fault.name} changes nothing on its graph: it measures nothing")


def _score(fault: OnnxFault, told: Finding | None, seconds: float) -> OnnxScore:
    nodes = [x.kind for x in told.proof.specimen.model.layers] if told and told.proof else []
    layer = told.layer.kind if told and told.layer else ""
    return OnnxScore(
        fault.name,
        fault.family,
        fault.target,
        found=told is not None and told.triage != "precision",
        accused=told is not None and told.accused == PLANTED,
        node=layer in fault.nodes,
        small=nodes == list(fault.nodes),
        kind=told is not None and told.kind == fault.kind,
        verdict=told.triage if told else "-",
        nodes=" → ".join(nodes) if len(nodes) < 5 else f"{len(nodes)} nodes",
        seconds=seconds,
        title=told.title if told else "nothing was said",
    )


def run_faults(faults: Sequence[OnnxFault], out: Path) -> list[OnnxScore]:
    began = time.monotonic()
    scores = []
    print(HEAD, flush=True)
    with open_pool() as pool:
        for fault in faults:
            score = scored(pool, fault, out / fault.name)
            scores.append(score)
            print(score.line(), flush=True)
    print_totals(scores, time.monotonic() - began)
    return scores


def print_totals(scores: Sequence[OnnxScore], seconds: float) -> None:
    whole = len(scores)
    print(f"\n{whole} planted faults ({seconds / 60:.1f} min)")
    for what, marks in (
        ("found", [s.found for s in scores]),
        ("the planted target accused", [s.accused for s in scores]),
        ("the node named", [s.node for s in scores]),
        ("smallest graph: one node, two for a fusion", [s.small for s in scores]),
        ("right kind of finding", [s.kind for s in scores]),
        ("called a bug", [s.verdict == "bug" for s in scores]),
    ):
        print(f"{what}: {sum(marks)} of {whole}")
    for score in scores:
        if not score.is_right:
            print(f"not right: {score.name}: {score.title}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="names of faults, with commas between")
    parser.add_argument("--family", help="faults of one family")
    parser.add_argument("--out", type=Path, help="keep findings and onnx_faults.json there")
    parser.add_argument(
        "--clean", nargs="*", type=Path, metavar="FOLDER", help="folders with .onnx files"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = options.out or Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        if options.clean is not None:
            from onnx_faults_clean import run_clean

            run_clean(options.clean, out)
            return
        scores = run_faults(_chosen(options.only, options.family), out)
        rows = [asdict(score) for score in scores]
        (out / "onnx_faults.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _chosen(only: str | None, family: str | None) -> list[OnnxFault]:
    known = {fault.name: fault for fault in FAULTS}
    names = only.split(",") if only else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"there is no fault {unknown[0]!r}; see benchmarks/onnx_fault_rows.py")
    return [known[name] for name in names if family in (None, known[name].family)]


if __name__ == "__main__":
    main()
