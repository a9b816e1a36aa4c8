"""Kinks and ties: where a function has no single derivative, no library may be called wrong.

    python benchmarks/gradient_kinks.py

Layers and losses on inputs at their kinks (relu at 0, borders of clipping, equal elements under a
maximum), on TensorFlow, JAX and PyTorch. Printed: how many are equal everywhere, how many are
called a difference or rounding, and every one that is called anything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.exercise import do, observe
from outvote.core.arrays import Array
from outvote.core.exercises import Pull
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.dialects.keras.targets import BUILT_IN
from outvote.judge.compare import Settings
from outvote.run.local import LocalPool
from outvote.triage.stage_inquiry import StageInquiry
from outvote.triage.stage_verdict import decide_stage

TARGETS = {name: BUILT_IN[name] for name in ("tensorflow", "jax", "torch")}
_ACTIVATIONS: dict[str, tuple[float, ...]] = {
    "relu": (0.0,), "relu6": (0.0, 6.0), "leaky_relu": (0.0,), "elu": (0.0,), "selu": (0.0,),
    "softsign": (0.0,), "hard_sigmoid": (-3.0, 3.0), "hard_silu": (-3.0, 3.0),
    "hard_tanh": (-1.0, 1.0), "hard_shrink": (-0.5, 0.5), "soft_shrink": (-0.5, 0.5),
    "sparse_plus": (-1.0, 1.0), "sparse_sigmoid": (-1.0, 1.0), "squareplus": (0.0,),
    "log_sigmoid": (0.0,), "sparsemax": (0.0,),
}  # fmt: skip
_LAYERS: tuple[tuple[str, dict[str, Any], tuple[float, ...]], ...] = (
    ("ReLU", {"max_value": 2.0}, (0.0, 2.0)),
    ("ReLU", {"threshold": 1.0}, (1.0,)),
    ("ReLU", {"negative_slope": 0.1}, (0.0,)),
    ("LeakyReLU", {}, (0.0,)),
    ("ELU", {}, (0.0,)),
    ("Softmax", {}, (0.0, 1.0)),
)
_POOLS: tuple[tuple[str, dict[str, Any], tuple[int, ...]], ...] = (
    ("MaxPooling1D", {}, (4, 2)),
    ("MaxPooling2D", {}, (4, 4, 2)),
    ("MaxPooling3D", {}, (2, 2, 2, 2)),
    ("GlobalMaxPooling1D", {}, (4, 2)),
    ("GlobalMaxPooling2D", {}, (3, 3, 2)),
    ("GlobalMaxPooling3D", {}, (2, 2, 2, 2)),
    # Windows that overlap: an element may tie in several.
    ("MaxPooling1D", {"pool_size": 3, "strides": 1}, (6, 2)),
    ("MaxPooling2D", {"pool_size": 3, "strides": 1}, (5, 4, 2)),
    ("AdaptiveMaxPooling1D", {"output_size": [3]}, (4, 2)),
    ("AdaptiveMaxPooling3D", {"output_size": [3, 1, 2]}, (4, 3, 3, 2)),
)
_LOSSES: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("MeanAbsoluteError", {}, 0.0),
    ("MeanAbsolutePercentageError", {}, 0.0),
    ("MeanSquaredLogarithmicError", {}, 0.0),
    ("Huber", {}, 0.0),
    ("Huber", {}, 1.0),
    ("Huber", {"delta": 0.5}, -0.5),
    ("LogCosh", {}, 0.0),
)
_HINGES = ("Hinge", "SquaredHinge", "CategoricalHinge")


@dataclass(frozen=True)
class Kink:
    """A name for people, and what is differentiated."""

    name: str
    pull: Pull


def kinks() -> Iterator[Kink]:
    """All of them; the same every time."""
    rng = np.random.default_rng(0)
    for name, points in _ACTIVATIONS.items():
        for point in points:
            config = {"activation": name}
            for share in (0.5, 1.0):
                yield _of_layer(f"{name} at {point}", "Activation", config, _at(rng, point, share))
    for kind, config, points in _LAYERS:
        for point in points:
            for share in (0.5, 1.0):
                yield _of_layer(f"{kind} {config} at {point}", kind, config, _at(rng, point, share))
    for kind, config, shape in _POOLS:
        for ties in (np.zeros((2, *shape)), rng.integers(0, 2, (2, *shape))):
            yield _of_layer(f"{kind} {config} of equals", kind, config, ties.astype(np.float32))
    for kind in ("Maximum", "Minimum"):
        for share in (0.5, 1.0):
            x = rng.normal(size=(3, 4)).astype(np.float32)
            other = np.where(rng.random((3, 4)) < share, x, -x).astype(np.float32)
            yield _of_layer(f"{kind} of equals", kind, {}, x, other)
    for kind, config, apart in _LOSSES:
        truth = rng.normal(size=(3, 4)).astype(np.float32)
        for share in (0.5, 1.0):
            off = np.where(rng.random((3, 4)) < share, apart, 0.3)
            guess = (truth + off).astype(np.float32)
            yield _of_loss(f"{kind} {config} at {apart}", kind, config, guess, truth)
    for kind in _HINGES:
        signs = rng.choice([-1.0, 1.0], (3, 4)).astype(np.float32)
        yield _of_loss(f"{kind} at its margin", kind, {}, signs, signs)
        yield _of_loss(f"{kind} at zero", kind, {}, 0 * signs, signs)


def _at(rng: np.random.Generator, point: float, share: float) -> Array:
    """Numbers of which a share is at a kink."""
    drawn = rng.normal(size=(3, 5))
    return np.where(rng.random((3, 5)) < share, point, drawn).astype(np.float32)


def _of_layer(name: str, kind: str, config: dict[str, Any], *given: Array) -> Kink:
    inputs = tuple(
        Input(f"x{n}", (None, *array.shape[1:]), "float32") for n, array in enumerate(given)
    )
    refs: list[Any] = [{REF: [item.name, 0]} for item in inputs]
    layer = Layer(
        "kink",
        kind,
        {"name": "kink", **config},
        args=refs if len(refs) == 1 else [refs],
        origin={"module": "keras.layers"},
    )
    model = Model("kink", inputs, (layer,), (Ref("kink"),), "keras")
    sizes = _sizes(kind, config, given[0])
    cotangent = np.random.default_rng(1).normal(size=sizes).astype(np.float32)
    return Kink(name, Pull(model, given, (cotangent,)))


def _sizes(kind: str, config: dict[str, Any], x: Array) -> tuple[int, ...]:
    """Of the result."""
    if kind.startswith("Adaptive"):
        return (len(x), *config["output_size"], x.shape[-1])
    if kind.startswith("GlobalMax"):
        return (len(x), x.shape[-1])
    if kind.startswith("MaxPooling"):
        pool = config.get("pool_size", 2)
        places = ((n - pool) // config.get("strides", pool) + 1 for n in x.shape[1:-1])
        return (len(x), *places, x.shape[-1])
    return x.shape


def _of_loss(name: str, kind: str, config: dict[str, Any], guess: Array, truth: Array) -> Kink:
    item = Input("x0", (None, 4), "float32")
    model = Model("loss", (item,), (), (Ref("x0"),), "keras")
    loss = {"class_name": kind, "config": config}
    return Kink(name, Pull(model, (guess,), loss=loss, truth=truth))


def judged(bench: Bench, kink: Kink) -> tuple[str, str]:
    """`equal` or the verdict, and why."""
    done = do(bench, kink.pull, list(TARGETS))
    seen = observe(bench, done, "gradient")
    if seen.kind is None:
        return ("equal", "") if len(done.replies) > 1 else ("not compared", str(done.failures))
    said = decide_stage(StageInquiry(bench, done, "gradient", seen))
    return said.triage, f"{said.row}: {said.reason}"


def main() -> None:
    told: Counter[str] = Counter()
    with LocalPool(list(TARGETS.values())) as pool:
        bench = Bench(pool, TARGETS, Settings())
        for kink in kinks():
            verdict, reason = judged(bench, kink)
            told[verdict] += 1
            if verdict not in ("equal", "difference", "precision"):
                print(f"{verdict}: {kink.name}: {reason}", flush=True)
    print(f"{told.total()} kinks and ties: {', '.join(f'{n} {v}' for v, n in told.items())}")


if __name__ == "__main__":
    main()
