"""ONNX' own node tests through our pool: how many each built-in target passes, and what it fails.

    python benchmarks/onnx_node_tests.py                    # counts, about five minutes
    python benchmarks/onnx_node_tests.py --only conv        # those whose name holds a word
    python benchmarks/onnx_node_tests.py --triage --out DIR # and a verdict on every wrong value

A case is passed when all outputs have the right type and shape and lie within the case's own
tolerances. `unsupported`: the target has not the operator, type or version; `refused`: we do not
take sequences, optionals and strings as inputs or outputs. Nothing is lost: a crash is a count.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from outvote.bench.reader import read_file
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.core.errors import UsageError
from outvote.core.outputs import Outputs
from outvote.core.protocol import RunModel
from outvote.core.target import Target
from outvote.dialects.onnx.nouns.types import carrier
from outvote.dialects.onnx.targets import BUILT_IN, DEFAULT
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.process import Limits
from outvote.run.settle import ask_all_settled

READER = "onnx-reference"


@dataclass(frozen=True)
class NodeTest:
    """One example of ONNX: a model, what goes in, what must come out, how exactly."""

    name: str
    proto: Any
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    relative: float
    absolute: float


def node_tests(only: str) -> list[NodeTest]:
    """All of them, made anew by ONNX; the first set of data of each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    found = []
    for case in cases:
        if only in case.name:
            inputs, outputs = map(tuple, case.data_sets[0])
            found.append(NodeTest(case.name, case.model, inputs, outputs, case.rtol, case.atol))
    return found


def travelling(given: Any) -> Any:
    """An array as it crosses the wire: narrow types widened."""
    exact = numpy_helper.to_array(given) if isinstance(given, onnx.TensorProto) else given
    array = np.asarray(exact)
    return array.astype(carrier(array.dtype.name))


def fault_of(test: NodeTest, found: Outputs) -> str:
    """What is wrong with a target's answer; empty where nothing is."""
    if len(found.arrays) != len(test.outputs):
        return f"{len(found.arrays)} outputs of {len(test.outputs)}"
    for got, dtype, right in zip(found.arrays, found.dtypes, test.outputs, strict=True):
        exact = numpy_helper.to_array(right) if isinstance(right, onnx.TensorProto) else right
        wanted = np.asarray(exact)
        if (got.shape, dtype) != (wanted.shape, wanted.dtype.name):
            return f"{dtype}{list(got.shape)} for {wanted.dtype.name}{list(wanted.shape)}"
        numbers, truth = got.astype(np.float64), travelling(right).astype(np.float64)
        same = np.isclose(numbers, truth, test.relative, test.absolute, equal_nan=True)
        if not same.all():
            return f"{(~same).sum()} of {same.size} values"
    return ""


@dataclass
class Tally:
    """What became of every case on every target."""

    names: list[str]

    def __post_init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in self.names}
        self.rows: list[dict[str, str]] = []

    def note(self, test: str, target: str, outcome: str, told: str = "") -> None:
        self.counts[target][outcome] += 1
        if outcome != "ok":
            self.rows.append({"case": test, "target": target, "outcome": outcome, "told": told})


def run_one(pool: Pool, test: NodeTest, tally: Tally, folder: Path) -> bool:
    """One case on every target; whether somebody gave something wrong."""
    path = folder / "model.onnx"
    path.write_bytes(test.proto.SerializeToString())
    read = read_file(pool, READER, path)
    if not read.ok:
        for name in tally.names:
            tally.note(test.name, name, "refused", read.message)
        return False
    inputs = tuple(pool.blobs.put(travelling(item)) for item in test.inputs)
    request = RunModel(model=read.reply.model, inputs=inputs, batch=1 << 20)
    wrong = False
    for name, run in ask_all_settled(pool, tally.names, request).items():
        if not run.ok:
            tally.note(test.name, name, run.outcome.value, " ".join(run.message.split())[:200])
            continue
        fault = fault_of(test, run.reply.outputs)
        tally.note(test.name, name, "wrong" if fault else "ok", fault)
        wrong |= bool(fault)
    return wrong


def verdicts(
    pool: Pool, test: NodeTest, targets: tuple[Target, ...], folder: Path
) -> list[dict[str, Any]]:
    """What `check` says of a case: is it a bug, whose, and why."""
    path = folder / "model.onnx"
    path.write_bytes(test.proto.SerializeToString())
    arrays = {f"x{i}": travelling(item) for i, item in enumerate(test.inputs)}
    if len(arrays) == 1:
        arrays = {"x": arrays["x0"]}
    job = Job(path, targets, data=arrays, allow_nan=True, allow_empty=True, minimise=5.0)
    try:
        checked = check_in(pool, job)
    except UsageError as error:
        return [{"case": test.name, "triage": "not compared", "reason": str(error)}]
    return [
        {
            "case": test.name,
            "triage": finding.triage,
            "accused": finding.accused,
            "layer": finding.layer.kind if finding.layer else None,
            "kind": finding.kind,
            "reason": finding.reason,
        }
        for finding in checked.findings
    ]


def table(tally: Tally) -> str:
    kinds = sorted({kind for count in tally.counts.values() for kind in count})
    width = max(map(len, tally.names))
    lines = [" ".join(["target".ljust(width), *(kind.rjust(12) for kind in kinds)])]
    for name in tally.names:
        counts = [str(tally.counts[name][kind]).rjust(12) for kind in kinds]
        lines.append(" ".join([name.ljust(width), *counts]))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--targets", default=",".join(DEFAULT), help="default: %(default)s")
    parser.add_argument("--triage", action="store_true", help="a verdict on every wrong value")
    parser.add_argument("--out", type=Path, help="write node_tests.json there")
    options = parser.parse_args()
    targets = tuple(BUILT_IN[name] for name in options.targets.split(","))
    tally = Tally([target.name for target in targets])
    told: list[dict[str, Any]] = []
    pooled = {target.name: target for target in (*targets, BUILT_IN[READER])}
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalPool(pooled.values(), limits=Limits(silence_seconds=60)) as pool,
    ):
        pool.start()
        tests = node_tests(options.only)
        for test in tests:
            if run_one(pool, test, tally, Path(folder)) and options.triage:
                told += verdicts(pool, test, targets, Path(folder))
        restarts = dict(pool.restarts)
    print(f"{len(tests)} cases in {time.monotonic() - began:.0f} s; workers replaced: {restarts}")
    print(table(tally))
    for triage, count in Counter(row["triage"] for row in told).most_common():
        print(f"{triage}: {count}")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        result = {"counts": tally.counts, "rows": tally.rows, "verdicts": told}
        (options.out / "node_tests.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
