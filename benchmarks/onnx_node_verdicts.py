"""Why a target's answer to a node test is not the example's: part of onnx_node_tests.py.

The example takes part as a witness beside the targets. It is not independent of ONNX' reference
implementation: together they have one vote. Each wrong answer is held against everybody who passed
and everybody who gave the same answer; then the rows of the verdict decide, as in `check`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from outvote.bench.bench import Bench
from outvote.core.model import Model
from outvote.core.outputs import Outputs
from outvote.core.protocol import Forget, RunModel
from outvote.core.specimen import Specimen
from outvote.core.target import Run, Target
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.dialects.onnx.workers.shared.examples import NodeTest
from outvote.judge.compare import Settings, distance
from outvote.judge.observation import Observation
from outvote.localize.layers import localize
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled
from outvote.triage.verdict import Verdict, decide

EXAMPLE = "the example"
# They draw numbers, and the specification names no generator.
_DRAW = {
    *("Bernoulli", "Dropout", "Multinomial"),
    *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
}


@dataclass(frozen=True)
class NodeVerdict:
    """bug, difference, rounding, random or unknown; in which operator; and what shows it."""

    case: str
    target: str
    triage: str
    operator: str
    cause: str
    proof: str
    accused: tuple[str, ...] = ()


class NodeVerdicts:
    """Judges wrong answers on the targets of a pool."""

    def __init__(self, pool: Pool, targets: Sequence[Target]) -> None:
        # Where the example has to be computed again, the reference stands in for it.
        reference = BUILT_IN["onnx-reference"]
        narrow = reference.capabilities - {"float64"}
        self._example = replace(reference, name=EXAMPLE, capabilities=narrow)
        pool.add(self._example)
        self._pool = pool
        self._targets = {target.name: target for target in targets}
        everyone = {**self._targets, EXAMPLE: self._example}
        self._bench = Bench(pool, everyone, Settings())

    def verdicts(
        self, test: NodeTest, model: Model, runs: Mapping[str, Run], wrong: Sequence[str]
    ) -> list[NodeVerdict]:
        """One for each wrong answer."""
        specimen = Specimen(model, tuple(tensor.array for tensor in test.inputs))
        outputs = {name: run.reply.outputs for name, run in runs.items() if run.ok}
        some = next(iter(outputs.values()))
        outputs[EXAMPLE] = Outputs(
            tuple(tensor.array for tensor in test.outputs),
            tuple(tensor.dtype for tensor in test.outputs),
            some.batch if len(some.batch) == len(test.outputs) else (),
        )
        drawing = _DRAW & {layer.kind for layer in model.layers}
        if drawing:
            return [self._random(test, specimen, min(drawing), name) for name in wrong]
        return [self._verdict(test, specimen, outputs, wrong, name) for name in wrong]

    def _random(self, test: NodeTest, specimen: Specimen, operator: str, name: str) -> NodeVerdict:
        found = [self._afresh(specimen, name) for _ in range(2)]
        apart = distance(*found)
        proof = f"two runs of {name} differ by {apart:.2g} (relative)"
        if not apart:
            proof = f"{name} draws the same again, and others draw otherwise from the same seed"
        cause = f"{operator} draws numbers, and the specification names no generator"
        return NodeVerdict(test.name, name, "random", operator, cause, proof)

    def _afresh(self, specimen: Specimen, name: str) -> Outputs:
        ask_settled(self._pool, name, Forget())
        inputs = tuple(self._pool.blobs.put(array) for array in specimen.inputs)
        request = RunModel(model=specimen.model, inputs=inputs, batch=1 << 20)
        outputs: Outputs = ask_settled(self._pool, name, request).reply.outputs
        return outputs

    def _verdict(
        self,
        test: NodeTest,
        specimen: Specimen,
        outputs: Mapping[str, Outputs],
        wrong: Sequence[str],
        name: str,
    ) -> NodeVerdict:
        if self._targets[name].does_feign(outputs[name].dtypes):
            outputs = {other: _in_float32(found) for other, found in outputs.items()}
        rounding = self._bench.rounding(specimen, outputs)
        rounding = self._bench.with_noise(rounding, specimen, outputs)
        kept = {
            other: found
            for other, found in outputs.items()
            if other not in wrong or other == name or rounding.gap(outputs[name], found).explained
        }
        seen = self._bench.judged(kept, {}, rounding, specimen)
        operator = self._operator(specimen, name)
        if seen.kind is None:
            gap = rounding.gap(outputs[name], outputs[EXAMPLE])
            cause = "no farther from the example than rounding in this type"
            proof = f"distance {gap.distance:.2g} (relative), rounding explains {gap.limit:.2g}"
            return NodeVerdict(test.name, name, "rounding", operator, cause, proof)
        verdict = decide(self._bench, specimen, seen)
        triage, cause = _told(verdict, seen, name)
        proof = f"row {verdict.row!r} of the verdict: {verdict.reason}"
        return NodeVerdict(test.name, name, triage, operator, cause, proof, verdict.wrong)

    def _operator(self, specimen: Specimen, name: str) -> str:
        """The node that is at fault: the only one, or the first that is outvoted alone."""
        if len(specimen.model.layers) == 1:
            return specimen.last.kind
        witnesses = {
            other: target
            for other, target in self._targets.items()
            if other in (name, "onnxruntime", "onnx-reference")
        }
        reference = next(other for other in reversed(witnesses) if other != name)
        located = localize(
            self._pool, specimen.model, specimen.inputs, reference, witnesses, Settings()
        )
        for fault in located.faults:
            if name in fault.vote.outvoted or not fault.vote.decided:
                return fault.layer.kind
        return specimen.last.kind


def _in_float32(found: Outputs) -> Outputs:
    """What was computed in float32 and is called float64, as what it is."""
    arrays = tuple(a.astype(np.float32) if a.dtype == np.float64 else a for a in found.arrays)
    types = tuple("float32" if dtype == "float64" else dtype for dtype in found.dtypes)
    return replace(found, arrays=arrays, dtypes=types)


def _told(verdict: Verdict, seen: Observation, name: str) -> tuple[str, str]:
    """What the verdict says of one target. Without an exact result nothing is decided.

    Libraries that agree against the example may lack the same attribute of a new version.
    """
    if verdict.triage == "precision":
        return "rounding", "within what rounding in this type explains"
    if name in verdict.wrong:
        return verdict.triage, "the target is wrong"
    if verdict.exact is not None and EXAMPLE in verdict.wrong:
        return "difference", "the example is not what the exact computation gives"
    if verdict.exact is not None and verdict.wrong:
        return "rounding", f"{' and '.join(verdict.wrong)} is wrong, not this target"
    if verdict.triage == "difference":
        return "difference", "the specification leaves it open"
    others = [n for group in seen.vote.groups if name in group for n in group if n != name]
    told = f", as {' and '.join(others)} do" if others else ""
    return "unknown", f"contradicts the specification's example{told}; no exact result decides"
