"""Losses, optimisers, regularisers and constraints as cases of their own, at their corners.

What there is, the library itself says. Parameters are drawn by their names from `VALUES`; one that
has no row keeps its default. Predictions lie on the truth, at margins, at 0 and 1, or overflow;
gradients vanish, tie, or come as rows of which some are named twice; instances weigh nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.exercises import Pull, StageCase, Update, loss_pull
from outvote.core.model import REF, Input, Layer, Model, Ref, Weight
from outvote.core.train_protocol import Named, StagesListed
from outvote.dialects.keras.lesson import FEATURES
from outvote.mutate import extremes

_SGD = {"class_name": "SGD", "config": {"learning_rate": 0.5}}
VALUES: Mapping[str, tuple[Any, ...]] = {
    # of losses
    "from_logits": (True, False),
    "label_smoothing": (0.0, 0.1, 1.0),
    "reduction": ("sum", "sum_over_batch_size", "mean", "mean_with_sample_weight"),
    "ignore_class": (0, 1),
    "delta": (0.5, 2.0),
    "gamma": (0.0, 1.0, 2.0),
    "alpha": (0.0, 0.25, 1.0),
    "beta": (0.25, 0.9),
    "apply_class_balancing": (True,),
    # of optimisers
    "learning_rate": (0.5, 0.01),
    "momentum": (0.0, 0.9),
    "nesterov": (True,),
    "weight_decay": (0.05,),
    "clipnorm": (0.1,),
    "clipvalue": (0.1,),
    "global_clipnorm": (0.1,),
    "use_ema": (True,),
    "ema_overwrite_frequency": (2,),
    "loss_scale_factor": (8.0,),
    "gradient_accumulation_steps": (2,),
    "amsgrad": (True,),
    "centered": (True,),
    "epsilon": (1e-7, 1e-3),
    "inner_optimizer": ({"module": "keras.optimizers", "registered_name": None, **_SGD},),
    # of regularisers and constraints
    "l1": (0.0, 0.1),
    "l2": (0.0, 0.1),
    "mode": ("rows", "columns"),
    "min_value": (0.0, 0.5),
    "max_value": (0.5, 1.0),
    "rate": (0.5, 1.0),
    "axis": (0, 1),
}
_DRAWN = 0.3  # of the parameters
_NEEDED = ("inner_optimizer",)
_OF_LAST_AXIS = -1  # an axis that losses take; that of weights may be any
_EMPTY, _WEIGHED, _IN_ROWS, _SQUASHED = 0.05, 0.4, 0.3, 0.3
_STEPS = 3
_SHAPE = (4, 3)  # of weights
Draw = Callable[[str, Mapping[str, Any], BlobStore, np.random.Generator], StageCase]


def drawn_stage(listed: StagesListed, blobs: BlobStore, rng: np.random.Generator) -> StageCase:
    """A family, one of its kinds, parameters and arrays."""
    families: Sequence[tuple[Mapping[str, Mapping[str, Any]], Draw]] = (
        ({kind: listed.losses[kind] for kind in listed.truths}, partial(_loss, listed.truths)),
        (listed.optimizers, _optimiser),
        (listed.regularizers, _regulariser),
        (listed.constraints, _constraint),
    )
    kinds = [(kind, known[kind], draw) for known, draw in families for kind in known]
    kind, parameters, draw = kinds[int(rng.integers(len(kinds)))]
    return draw(kind, parameters, blobs, rng)


def _config(parameters: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in parameters:
        if name not in VALUES or not (name in _NEEDED or rng.random() < _DRAWN):
            continue
        if name in FEATURES["clipping"] and any(key in found for key in FEATURES["clipping"]):
            continue  # Keras takes one way to clip
        values = VALUES[name]
        found[name] = values[int(rng.integers(len(values)))]
    if "ema_overwrite_frequency" in found and not found.get("use_ema"):
        del found["ema_overwrite_frequency"]
    return found


# Losses.


def _loss(
    truths: Mapping[str, str],
    kind: str,
    parameters: Mapping[str, Any],
    blobs: BlobStore,
    rng: np.random.Generator,
) -> StageCase:
    config = _config(parameters, rng)
    if "axis" in config:
        config["axis"] = _OF_LAST_AXIS
    count = 0 if rng.random() < _EMPTY else 3
    logits = bool(config.get("from_logits", parameters.get("from_logits")))
    squashed = "from_logits" in parameters and rng.random() < _SQUASHED
    of_chances = bool({"from_logits", "label_smoothing"} & parameters.keys())
    draw = _Pair(count, logits or squashed, of_chances, float(config.get("delta", 1.0)), rng)
    truth, prediction = draw.of(truths[kind])
    weight = None
    if rng.random() < _WEIGHED:
        weight = rng.choice([0.0, 1.0, 2.0], count).astype(np.float32) * (rng.random() < 0.8)
    loss = _serialised("keras.losses", kind, config)
    pull = loss_pull("keras", prediction, "float32", loss, truth, weight)
    if squashed:
        pull = replace(pull, model=_squashed(pull.model, rng))
    return StageCase("loss", kind, pull, ("value", "gradient"))


def _squashed(model: Model, rng: np.random.Generator) -> Model:
    """With a softmax or a sigmoid before the loss, behind which some libraries look for logits."""
    activation = ("softmax", "sigmoid")[int(rng.integers(2))]
    config = {"name": "squashed", "activation": activation, "dtype": "float32"}
    origin = {"module": "keras.layers"}
    layer = Layer("squashed", "Activation", config, args=[{REF: ["prediction", 0]}], origin=origin)
    return replace(model, layers=(layer,), outputs=(Ref("squashed"),))


@dataclass(frozen=True)
class _Pair:
    """What should be, and what is predicted, by the form of the truth."""

    count: int
    logits: bool
    of_chances: bool  # whether nothing else than chances has a meaning
    far: float  # from the truth, where a border lies
    rng: np.random.Generator

    def of(self, form: str) -> tuple[Array, Array]:
        if form == "sequence":
            truth = self.rng.integers(1, 4, (self.count, 2)).astype(np.int32)
            return truth, _scores((self.count, 5, 4), self.rng)
        ways = (self._chances,) if self.of_chances else (self._chances, self._signs, self._values)
        if form == "class":
            truth = self.rng.integers(0, 4, self.count).astype(np.int32)
            return truth, self._guess(self.logits or (len(ways) > 1 and self.rng.random() < 0.5))
        return ways[int(self.rng.integers(len(ways)))]()

    @property
    def _shape(self) -> tuple[int, int]:
        return self.count, 4

    def _chances(self) -> tuple[Array, Array]:
        """One class for each row, or each number by itself."""
        if self.rng.random() < 0.5:
            return _rounded(self.rng.integers(0, 2, self._shape)), self._guess(self.logits)
        rows = self.rng.integers(0, 4, self.count)
        return np.eye(4, dtype=np.float32)[rows], self._guess(self.logits)

    def _guess(self, logits: bool) -> Array:
        return _guess(self._shape, logits, self.rng)

    def _signs(self) -> tuple[Array, Array]:
        drawn = self.rng.choice([-1.0, 1.0], self._shape)
        return _rounded(drawn), _rounded(extremes.ties(self._shape, "", self.rng))

    def _values(self) -> tuple[Array, Array]:
        truth = _rounded(self.rng.normal(size=self._shape))
        apart = self.rng.choice([0.0, self.far, -self.far, 0.3], self._shape)
        return truth, _rounded(truth + apart)


def _guess(shape: tuple[int, ...], logits: bool, rng: np.random.Generator) -> Array:
    """Logits of any size, or probabilities, all of a row being 0 and 1 now and then."""
    scores = _scores(shape, rng)
    if logits:
        return scores
    powers = np.exp(np.clip(scores, -40, 40).astype(np.float64))
    found = powers / powers.sum(axis=-1, keepdims=True)
    certain = np.eye(shape[-1])[found.argmax(axis=-1)]
    return _rounded(np.where(rng.random((*shape[:-1], 1)) < 0.2, certain, found))


def _scores(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    ways = (extremes.usual, extremes.ties, extremes.moderate, extremes.offset)
    return _rounded(ways[int(rng.integers(len(ways)))](shape, "float32", rng))


def _rounded(array: Array) -> Array:
    return np.asarray(array, np.float32)


# Optimisers and constraints.


def _optimiser(
    kind: str, parameters: Mapping[str, Any], blobs: BlobStore, rng: np.random.Generator
) -> StageCase:
    named = _serialised("keras.optimizers", kind, _config(parameters, rng))
    return StageCase("optimiser", kind, _update(named, None, rng), ("weights",))


def _constraint(
    kind: str, parameters: Mapping[str, Any], blobs: BlobStore, rng: np.random.Generator
) -> StageCase:
    held = _serialised("keras.constraints", kind, _config(parameters, rng))
    return StageCase("constraint", kind, _update(_SGD, held, rng), ("weights",))


def _update(optimizer: Named, constraint: Named | None, rng: np.random.Generator) -> Update:
    rows = np.array([0, 2, 2, 1]) if rng.random() < _IN_ROWS else None  # one is named twice
    weight = _values(_SHAPE, rng)
    gradients = tuple((_values(_SHAPE, rng),) for _ in range(_STEPS))
    if constraint is not None and rng.random() < 0.5:  # a row that the first update makes zero
        gradients[0][0][0] = weight[0] / _SGD["config"]["learning_rate"]  # type: ignore[index]
        rows = None
    return Update(optimizer, (weight,), gradients, (rows,), (constraint,))


def _values(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    ways = (extremes.usual, extremes.ties, extremes.moderate)
    found = ways[int(rng.integers(len(ways)))](shape, "float32", rng)
    return _rounded(found * (rng.random(shape) < 0.8))


def _regulariser(
    kind: str, parameters: Mapping[str, Any], blobs: BlobStore, rng: np.random.Generator
) -> StageCase:
    """Of the matrix of a Dense layer."""
    asked = _serialised("keras.regularizers", kind, _config(parameters, rng))
    config = {"name": "dense", "units": _SHAPE[1], "use_bias": False, "dtype": "float32"}
    layer = Layer(
        "dense",
        "Dense",
        {**config, "kernel_regularizer": asked},
        args=[{REF: ["x", 0]}],
        origin={"module": "keras.layers", "build": {"input_shape": [None, _SHAPE[0]]}},
        weights=(Weight("kernel", blobs.put(_values(_SHAPE, rng)), _SHAPE),),
    )
    x = Input("x", (None, _SHAPE[0]), "float32")
    model = Model("regularised", (x,), (layer,), (Ref("dense"),), "keras")
    pull = Pull(model, (np.ones((1, _SHAPE[0]), np.float32),), penalty=True)
    return StageCase("regulariser", kind, pull, ("value", "gradient"))


def _serialised(module: str, kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    return {"module": module, "class_name": kind, "config": dict(config), "registered_name": None}
