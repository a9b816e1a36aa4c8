"""Triage: is it a bug, a difference that is meant, or rounding? And whose?

Three instruments: the same computation in float64, the noise floor, an independent reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.noise import nudged
from outvote.core.arrays import Array
from outvote.core.dialect import dialect
from outvote.core.outputs import Outputs, outputs_of
from outvote.core.specimen import Specimen
from outvote.judge.compare import only_width_differs
from outvote.judge.distances import distance_relative
from outvote.judge.observation import Observation
from outvote.judge.tolerance import BEYOND_ROUNDING, base_tolerance, tolerance_of
from outvote.triage.differences import Difference, listed
from outvote.triage.exact import reference_of

_NUDGES = 12
_FEW = 0.25  # of the results


@dataclass(frozen=True)
class Truth:
    """What the exact computation gives, and where it comes from."""

    outputs: Outputs
    source: str


@dataclass(frozen=True)
class Verdict:
    """bug, difference, precision or unknown; who is wrong; why we think so."""

    triage: str
    wrong: tuple[str, ...]
    reason: str
    truth: Truth | None = None
    errors: Mapping[str, float] | None = None  # distance of each target to the truth


def decide(bench: Bench, specimen: Specimen, seen: Observation) -> Verdict:
    """The verdict on what one specimen shows."""
    if seen.kind in ("crash", "hang"):
        return _failed(bench, specimen, seen)
    meant = listed(specimen, seen)
    truth = truth_of(bench, specimen, seen)
    if seen.kind == "shape":
        return _shape(specimen, seen, truth, meant)
    return _values(bench, specimen, seen, truth, meant)


def truth_of(bench: Bench, specimen: Specimen, seen: Observation) -> Truth | None:
    """Our own reference; without one, what independent targets agree on in float64."""
    exact = reference_of(specimen, bench.pool.blobs)
    if exact is not None:
        return Truth(exact, "an independent NumPy computation in float64")
    able = [n for n in seen.outputs if _can_be_wide(bench, n)]
    libraries = {bench.targets[n].implementation_of(specimen.last.kind) for n in able}
    if len(libraries) < 2 or not _has_floats(specimen) or not _can_widen(specimen):
        return None
    wide = _in_float64(bench, specimen, seen, able)
    groups = wide.vote.groups
    agree = wide.vote.majority or (groups[0] if len(groups) == 1 else ())
    if len({bench.targets[n].implementation_of(specimen.last.kind) for n in agree}) < 2:
        return None
    return Truth(wide.outputs[agree[0]], f"{' and '.join(agree)} in float64")


def _in_float64(
    bench: Bench, specimen: Specimen, seen: Observation, names: Sequence[str]
) -> Observation:
    """The same in float64, judged by the narrow type's tolerance."""
    widening = dialect(specimen.model.dialect).widening
    assert widening is not None
    runs = bench.run(widening.float64_of(specimen, bench.pool.blobs), names, exact=True)
    outputs = {name: outputs_of(run) for name, run in runs.items() if run.ok}
    tolerance = max(seen.tolerance, base_tolerance("float32", 8))
    return bench.judged(outputs, {}, tolerance, specimen)


def _can_be_wide(bench: Bench, name: str) -> bool:
    target = bench.targets[name]
    return target.backend in ("tensorflow", "jax", "torch", "numpy") and target.worker == "keras3"


def _can_widen(specimen: Specimen) -> bool:
    return dialect(specimen.model.dialect).widening is not None


def _has_floats(specimen: Specimen) -> bool:
    return any(array.dtype.kind == "f" for array in specimen.inputs)


def _failed(bench: Bench, specimen: Specimen, seen: Observation) -> Verdict:
    failed = tuple(n for n in seen.odd if n in seen.failures)
    if seen.vote.decided:
        return Verdict("bug", failed, f"{seen.vote.reason}.")
    truth = reference_of(specimen, bench.pool.blobs)
    if truth is None:
        return Verdict("unknown", (), f"{seen.vote.reason}.")
    errors = errors_of(seen.outputs, truth)
    if errors and all(e < seen.tolerance for e in errors.values()):
        told = Truth(truth, "an independent NumPy computation in float64")
        reason = f"{seen.vote.reason}; {told.source} gives what {_told(errors)} gives."
        return Verdict("bug", failed, reason, told, errors)
    return Verdict("unknown", (), f"{seen.vote.reason}.")


def _shape(
    specimen: Specimen, seen: Observation, truth: Truth | None, meant: Difference | None
) -> Verdict:
    if meant is not None:
        return Verdict("difference", seen.vote.outvoted, meant.text, truth)
    shapes = {n: [a.shape for a in o.arrays] for n, o in seen.outputs.items()}
    if seen.failures:  # some refuse what others compute
        return Verdict(
            "bug" if seen.vote.decided else "unknown", seen.vote.outvoted, f"{seen.vote.reason}."
        )
    if len({str(s) for s in shapes.values()}) == 1 and _integers(seen):
        if any(array.dtype.name in ("int64", "uint64") for array in specimen.inputs):
            reason = "Given 64-bit integers, a target that has none passes on narrower ones."
            return Verdict("precision", (), reason)
        return Verdict(
            "difference",
            seen.vote.outvoted,
            f"Values and shapes are equal, only the integer type differs; {seen.vote.reason}.",
        )
    if truth is None:
        triage = "bug" if seen.vote.decided else "unknown"
        return Verdict(triage, seen.vote.outvoted, f"{seen.vote.reason}.")
    right = [a.shape for a in truth.outputs.arrays]
    wrong = tuple(n for n, found in shapes.items() if found != right)
    if not wrong:  # of the right shape, so it is the type that differs
        triage = "bug" if seen.vote.decided else "unknown"
        return Verdict(triage, seen.vote.outvoted, f"{seen.vote.reason}.", truth)
    if len(wrong) == len(shapes):
        return Verdict(
            "unknown", (), f"{seen.vote.reason}; {truth.source} gives {right[0]}.", truth
        )
    return Verdict("bug", wrong, f"{seen.vote.reason}; {truth.source} gives {right[0]}.", truth)


def _integers(seen: Observation) -> bool:
    first, *others = seen.outputs.values()
    return all(only_width_differs(first, other) for other in others)


def _values(
    bench: Bench,
    specimen: Specimen,
    seen: Observation,
    truth: Truth | None,
    meant: Difference | None,
) -> Verdict:
    vote = seen.vote
    if truth is None:
        return _without_truth(bench, specimen, seen, meant)
    errors = errors_of(seen.outputs, truth.outputs)
    wrong = tuple(n for n, e in errors.items() if not e < seen.tolerance)
    told = ", ".join(f"{n} {e:.2g}" for n, e in errors.items())
    against = f"Distance to {truth.source}: {told}; rounding explains {seen.tolerance:.2g}"
    if _beyond_range(seen, truth):
        reason = f"{against}. The exact result does not fit into the type: overflow by rounding."
        return Verdict("precision", wrong, reason, truth, errors)
    if not wrong:
        return Verdict("precision", (), f"{against}.", truth, errors)
    if meant is not None and len(wrong) < len(errors):
        return Verdict("difference", wrong, f"{meant.text} {against}.", truth, errors)
    lost = _lost_digits(bench, specimen, seen, truth, errors, wrong) if meant is None else None
    if lost is not None:
        return Verdict("precision", wrong, f"{against}. {lost}.", truth, errors)
    if len(wrong) == len(errors):
        return _all_wrong(seen, truth, errors, against, meant)
    if _no_farther(errors, wrong, [n for n in errors if n not in wrong]):
        reason = f"{against}: none is much farther than the others."
        return Verdict("precision", wrong, reason, truth, errors)
    edge = None if _moves_numbers(specimen) else _edge(bench, specimen, seen, wrong)
    if edge is not None:
        return Verdict("precision", wrong, f"{against}. A discontinuity: {edge}.", truth, errors)
    if vote.decided and set(wrong) & set(vote.majority):
        return Verdict(
            "bug", wrong, f"{against}: here the majority is wrong. {vote.reason}.", truth, errors
        )
    return Verdict("bug", wrong, f"{against}. {vote.reason}.", truth, errors)


def _without_truth(
    bench: Bench, specimen: Specimen, seen: Observation, meant: Difference | None
) -> Verdict:
    vote = seen.vote
    if meant is not None:
        return Verdict("difference", vote.outvoted, meant.text)
    if not vote.decided:
        return Verdict("unknown", (), f"{vote.reason}. No float64 result could be had.")
    right = next((seen.outputs[n] for n in vote.majority if n in seen.outputs), None)
    given = [seen.outputs[n] for n in vote.outvoted if n in seen.outputs]
    reads = _scale(bench, specimen)
    if right and all(_within_a_step(found, right, reads) for found in given):
        reason = f"{vote.reason}. By no more than the last place of what the layer reads."
        return Verdict("precision", vote.outvoted, reason)
    return Verdict("bug", vote.outvoted, f"{vote.reason}. No float64 result could be had.")


def _no_farther(errors: Mapping[str, float], some: Sequence[str], others: Sequence[str]) -> bool:
    """Whether some targets are not much farther from the exact result than others."""
    theirs = [errors[n] for n in others if n in errors]
    return bool(theirs) and all(errors[n] <= 2 * max(theirs) for n in some if n in errors)


def _scale(bench: Bench, specimen: Specimen) -> float:
    """The largest number that a layer reads, 1 at least."""
    weights = [bench.pool.blobs.get(w.digest) for la in specimen.model.layers for w in la.weights]
    return max(1.0, *(_largest(array) for array in (*specimen.inputs, *weights)))


def _within_a_step(found: Outputs, right: Outputs, scale: float) -> bool:
    """Whether results differ by no more than a few last places of a number of that size.

    The small difference of two numbers, as in exp(x) - 1, is rounded like these numbers are.
    """
    pairs = list(zip(found.arrays, right.arrays, strict=False))
    if not pairs or any(x.shape != y.shape for x, y in pairs):
        return False
    with np.errstate(invalid="ignore"):
        far = [np.where(x == y, 0.0, np.abs(x.astype(float) - y)) for x, y in pairs]
    step = tolerance_of(found) * scale
    return all(bool((apart <= step).all()) for apart in far)


def _largest(array: Array) -> float:
    finite = np.abs(np.asarray(array, np.float64))
    return float(finite[np.isfinite(finite)].max(initial=0.0))


def _all_wrong(
    seen: Observation,
    truth: Truth,
    errors: Mapping[str, float],
    against: str,
    meant: Difference | None,
) -> Verdict:
    """No target gives what the reference gives: it may be the reference that errs."""
    finite = [e for e in errors.values() if np.isfinite(e)]
    if len(finite) == len(errors) and max(finite) <= 2 * min(finite):
        reason = f"{against}: none is nearer than the others."
        return Verdict("precision", (), reason, truth, errors)
    if not seen.vote.decided and meant is None:
        return Verdict("unknown", (), f"{against}; {seen.vote.reason}.", truth, errors)
    triage = "difference" if meant else "bug"
    told = meant.text if meant else f"{seen.vote.reason}."
    reason = f"{told} {against}: none gives that."
    return Verdict(triage, seen.vote.outvoted, reason, truth, errors)


def errors_of(outputs: Mapping[str, Outputs], truth: Outputs) -> dict[str, float]:
    """Largest relative distance of each target to the truth; infinite where shapes differ."""
    return {name: _error(found, truth) for name, found in outputs.items()}


def _error(found: Outputs, truth: Outputs) -> float:
    if [a.shape for a in found.arrays] != [a.shape for a in truth.arrays]:
        return float("inf")
    pairs = zip(found.arrays, truth.arrays, strict=True)
    flat = [distance_relative(x.reshape(1, -1), y.reshape(1, -1)) for x, y in pairs]
    return float(np.max(np.concatenate(flat))) if flat else 0.0


_LARGEST = {"float16": 65504.0, "float32": 3.4028e38, "bfloat16": 3.3895e38}


def _beyond_range(seen: Observation, truth: Truth) -> bool:
    """Whether the exact result is too large for the type that the targets compute in."""
    dtypes = next(iter(seen.outputs.values())).dtypes
    for dtype, array in zip(dtypes, truth.outputs.arrays, strict=False):
        finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind == "f" else np.zeros(1)
        if dtype in _LARGEST and finite.max(initial=0.0) > _LARGEST[dtype] / 2:
            return True
    return False


def _lost_digits(
    bench: Bench,
    specimen: Specimen,
    seen: Observation,
    truth: Truth,
    errors: Mapping[str, float],
    wrong: Sequence[str],
) -> str | None:
    """Why a difference that is small, somehow, is rounding; None where it is not."""
    everybody = len(wrong) == len(errors)  # how far they all are says little then
    if everybody:
        small = _no_farther(errors, seen.vote.outvoted, seen.vote.majority)
    else:
        small = max(errors[n] for n in wrong) < BEYOND_ROUNDING * seen.tolerance
    reads = _scale(bench, specimen)
    if not small and not all(_within_a_step(seen.outputs[n], truth.outputs, reads) for n in wrong):
        return None
    right = _right_in_float64(bench, specimen, seen, wrong, truth)
    if right:
        return "In float64 the difference vanishes: digits are lost, no more"
    if right is None and not everybody:
        return "Nobody can be asked in float64, and so small a difference has the benefit of doubt"
    return None


def _right_in_float64(
    bench: Bench, specimen: Specimen, seen: Observation, wrong: Sequence[str], truth: Truth
) -> bool | None:
    """Whether targets that are wrong are right when all is computed in float64; None: unknown."""
    able = [n for n in wrong if _can_be_wide(bench, n)]
    if not able or not _can_widen(specimen):
        return None
    wide = _in_float64(bench, specimen, seen, able)
    # A layer may compute in float32 inside, whatever type it is asked for.
    asked = {
        n: found
        for n, found in wide.outputs.items()
        if not (_is_narrow(found) and _within_a_step(seen.outputs[n], truth.outputs, 1.0))
    }
    errors = errors_of(asked, truth.outputs)
    return all(e < wide.tolerance for e in errors.values()) if errors else None


def _is_narrow(outputs: Outputs) -> bool:
    """Whether float64 holds nothing that float32 would not."""
    return all(np.array_equal(a, a.astype(np.float32), equal_nan=True) for a in outputs.arrays)


def _moves_numbers(specimen: Specimen) -> bool:
    """Whether the layer computes nothing that could be rounded."""
    formulas = dialect(specimen.model.dialect).reference
    return formulas is not None and formulas.is_exact(specimen.last.kind)


def _edge(bench: Bench, specimen: Specimen, seen: Observation, wrong: Sequence[str]) -> str | None:
    """Why the difference is a step of the function, that rounding may take; None if it is not."""
    right = next(n for n in seen.outputs if n not in wrong)
    if all(_one_step(seen.outputs[right], seen.outputs[name]) for name in wrong):
        return "results are rounded to whole numbers, and a few differ by one"
    if _on_an_edge(bench, specimen, seen, wrong):
        return (
            "moving the input by one unit in the last place makes targets give each other's answer"
        )
    return None


def _one_step(a: Outputs, b: Outputs) -> bool:
    pairs = list(zip(a.arrays, b.arrays, strict=True))
    if not all(x.dtype.kind == "f" and np.isfinite(x).all() for pair in pairs for x in pair):
        return False
    if not all(np.array_equal(x, np.round(x)) for pair in pairs for x in pair):
        return False
    steps = np.concatenate([np.abs(x - y).reshape(-1) for x, y in pairs])
    return bool(steps.max(initial=0) == 1 and (steps > 0).mean() <= _FEW)


def _on_an_edge(bench: Bench, specimen: Specimen, seen: Observation, wrong: Sequence[str]) -> bool:
    """Whether the least movement of the input takes a right target to the wrong one's answer."""
    right = [n for n in seen.outputs if n not in wrong]
    low, high = _span(seen.outputs[right[0]]), _span(seen.outputs[right[0]])
    for seed in range(_NUDGES):
        rng = np.random.default_rng(seed)
        moved = specimen.with_inputs([nudged(array, rng) for array in specimen.inputs])
        run = bench.run(moved, right[:1])[right[0]]
        if not run.ok:
            return False
        values = outputs_of(run).arrays
        low = [np.minimum(a, b) for a, b in zip(low, values, strict=True)]
        high = [np.maximum(a, b) for a, b in zip(high, values, strict=True)]
    answers = [seen.outputs[name].arrays for name in wrong]
    slack = seen.tolerance
    with np.errstate(invalid="ignore"):  # infinities have no slack
        return all(
            bool(((x >= lo - slack * np.abs(lo)) & (x <= hi + slack * np.abs(hi))).all())
            for arrays in answers
            for x, lo, hi in zip(arrays, low, high, strict=True)
        )


def _span(outputs: Outputs) -> list[Array]:
    return [np.asarray(array, np.float64) for array in outputs.arrays]


def _told(names: Mapping[str, float]) -> str:
    return " and ".join(names)
