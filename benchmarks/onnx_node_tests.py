"""ONNX' own node tests through our pool: how many each built-in target passes, and what it fails.

    python benchmarks/onnx_node_tests.py                    # all of them, with verdicts
    python benchmarks/onnx_node_tests.py --only conv        # those whose name holds a word
    python benchmarks/onnx_node_tests.py --counts           # without verdicts
    python benchmarks/onnx_node_tests.py --out DIR          # and node_tests.json there

A case is passed when all outputs have the right type and shape and lie within the case's own
tolerances. Otherwise a value is wrong, or the target refused the case (it says that it has not the
operator, type or version), failed (any other error), crashed or timed out. Nothing is lost: every
row adds up. Every wrong value gets a verdict, with cause and proof: see onnx_node_verdicts.py.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from onnx_node_verdicts import NodeVerdict, NodeVerdicts
from outvote.bench.reader import read_file
from outvote.core.arrays import TEXT, as_numbers
from outvote.core.model import Model
from outvote.core.outputs import Outputs
from outvote.core.protocol import RunModel
from outvote.core.target import Outcome, Run
from outvote.dialects.onnx.targets import BUILT_IN, DEFAULT
from outvote.dialects.onnx.workers.shared.examples import NodeTest, Tensor, node_tests
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.process import Limits
from outvote.run.settle import ask_all_settled

READER = "onnx-reference"
PASSED, WRONG, REFUSED, FAILED = "passed", "wrong value", "refused", "failed"
_ENDS = {
    Outcome.UNSUPPORTED: REFUSED,
    Outcome.ERROR: FAILED,
    Outcome.CRASH: "crashed",
    Outcome.MEMORY: "crashed",
    Outcome.GARBAGE: "crashed",
    Outcome.HANG: "timed out",
}
ENDS = (PASSED, WRONG, *dict.fromkeys(_ENDS.values()))


@dataclass(frozen=True)
class Ended:
    """What became of one case on one target."""

    case: str
    target: str
    end: str
    told: str = ""


def read_test(pool: Pool, test: NodeTest, folder: Path) -> Model:
    """The model of a case as neutral data, by way of a file."""
    path = folder / f"{test.name}.onnx"
    path.write_bytes(test.proto.SerializeToString())
    read = read_file(pool, READER, path)
    if not read.ok:
        raise SystemExit(f"{test.name} could not be read: {read.message}")
    return read.reply.model


def run_test(pool: Pool, test: NodeTest, names: Sequence[str], model: Model) -> dict[str, Run]:
    """One case on every target."""
    inputs = tuple(pool.blobs.put(tensor.array) for tensor in test.inputs)
    request = RunModel(model=model, inputs=inputs, batch=1 << 20)
    return ask_all_settled(pool, names, request)


def ended(test: NodeTest, run: Run) -> Ended:
    if not run.ok:
        told = " ".join(run.message.split())[:300]
        return Ended(test.name, run.target, _ENDS[run.outcome], told)
    fault = fault_of(test, run.reply.outputs)
    return Ended(test.name, run.target, WRONG if fault else PASSED, fault)


def fault_of(test: NodeTest, found: Outputs) -> str:
    """What is wrong with a target's answer; empty where nothing is."""
    if len(found.arrays) != len(test.outputs):
        return f"{len(found.arrays)} outputs of {len(test.outputs)}"
    pairs = zip(found.arrays, found.dtypes, test.outputs, strict=True)
    told = (_parted(test, Tensor(got, dtype), right) for got, dtype, right in pairs)
    return next(filter(None, told), "")


def _parted(test: NodeTest, got: Tensor, right: Tensor) -> str:
    if (got.array.shape, got.dtype) != (right.array.shape, right.dtype):
        return f"{got.dtype}{list(got.array.shape)} for {right.dtype}{list(right.array.shape)}"
    if got.dtype == TEXT:  # texts are compared by numbers that tell them apart
        same = np.asarray(got.array == as_numbers(right.array))
    else:
        x, y = got.array.astype(np.float64), right.array.astype(np.float64)
        same = np.isclose(x, y, test.relative, test.absolute, equal_nan=True)
    return "" if same.all() else f"{(~same).sum()} of {same.size} values"


def table(ends: Sequence[Ended], names: Sequence[str]) -> str:
    """How many of what, target by target."""
    width = max(map(len, names))
    lines = [" ".join(["target".ljust(width), *(end.rjust(12) for end in (*ENDS, "sum"))])]
    for name in names:
        counts = Counter(one.end for one in ends if one.target == name)
        numbers = [*(counts[end] for end in ENDS), counts.total()]
        lines.append(" ".join([name.ljust(width), *(str(n).rjust(12) for n in numbers)]))
    return "\n".join(lines)


def verdict_table(verdicts: Sequence[NodeVerdict], names: Sequence[str]) -> str:
    """What the wrong values are, target by target."""
    triages = sorted({verdict.triage for verdict in verdicts})
    width = max(map(len, names))
    lines = [" ".join(["wrong values".ljust(width), *(word.rjust(12) for word in triages)])]
    for name in names:
        counts = Counter(verdict.triage for verdict in verdicts if verdict.target == name)
        lines.append(" ".join([name.ljust(width), *(str(counts[t]).rjust(12) for t in triages)]))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--limit", type=int, help="so many at most")
    parser.add_argument("--targets", default=",".join(DEFAULT), help="default: %(default)s")
    parser.add_argument("--counts", action="store_true", help="no verdicts")
    parser.add_argument("--out", type=Path, help="write node_tests.json there")
    options = parser.parse_args()
    names = options.targets.split(",")
    pooled = [BUILT_IN[name] for name in dict.fromkeys((*names, READER))]
    ends: list[Ended] = []
    verdicts: list[NodeVerdict] = []
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as scratch,
        LocalPool(pooled, limits=Limits(silence_seconds=60)) as pool,
    ):
        pool.start()
        tests = node_tests(options.only, options.limit)
        judge = NodeVerdicts(pool, [BUILT_IN[name] for name in names])
        for test in tests:
            model = read_test(pool, test, Path(scratch))
            runs = run_test(pool, test, names, model)
            found = {name: ended(test, run) for name, run in runs.items()}
            left = [name for name, one in found.items() if one.end != PASSED]
            if test.bare and left:
                again = run_test(pool, test.bare, left, read_test(pool, test.bare, Path(scratch)))
                told = {name: ended(test.bare, run) for name, run in again.items()}
                found |= {name: one for name, one in told.items() if one.end == PASSED}
            ends += found.values()
            wrong = [name for name, one in found.items() if one.end == WRONG]
            if wrong and not options.counts:
                verdicts += judge.verdicts(test, model, runs, wrong)
        restarts = dict(pool.restarts)
    print(f"{len(tests)} cases in {time.monotonic() - began:.0f} s; workers replaced: {restarts}")
    print(table(ends, names))
    if verdicts:
        print(verdict_table(verdicts, names))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        rows = [asdict(one) for one in ends if one.end != PASSED]
        result = {"cases": len(tests), "rows": rows, "verdicts": [asdict(v) for v in verdicts]}
        (options.out / "node_tests.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
