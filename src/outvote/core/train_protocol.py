"""What is asked of workers that differentiate and train: gradients, updates, whole steps.

Nothing is drawn at random: weights, batch, cotangents and gradients are given, the same to all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outvote.core.arrays import Array
from outvote.core.model import Model
from outvote.core.outputs import Outputs
from outvote.core.protocol import Reply, Request

Named = Mapping[str, Any]  # a loss, an optimiser or a constraint as its library serialises it


@dataclass(frozen=True)
class Leaf:
    """An array that belongs to an input of the model (`layer` is empty) or a weight of a layer.

    No array: the library says that nothing depends on it.
    """

    layer: str
    place: int  # among the inputs, or among the weights of the layer
    name: str
    array: Array | None
    dtype: str = ""  # NumPy has no bfloat16


@dataclass(frozen=True, kw_only=True)
class TrainingPrepared(Reply):
    """The model as training calls it, with what draws random numbers switched off.

    `stilled`: layers that would draw some, and pass on what they get instead. `drawing`: layers
    for which that cannot be.
    """

    model: Model
    stilled: tuple[str, ...] = ()
    drawing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PrepareTraining(Request[TrainingPrepared], deed="differentiate models"):
    """What a model is in training."""

    model: Model


# Of the shape of the prediction, the number of a class for each row of it, or a row of such numbers
# for a prediction with one more axis.
TRUTHS = ("alike", "class", "sequence")


@dataclass(frozen=True, kw_only=True)
class StagesListed(Reply):
    """What a library trains with, by name; of each its parameters and their defaults.

    `truths`: what each loss takes for the truth, as far as it is one of `TRUTHS`.
    """

    losses: dict[str, dict[str, Any]]
    truths: dict[str, str]
    optimizers: dict[str, dict[str, Any]]
    regularizers: dict[str, dict[str, Any]]
    constraints: dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class ListStages(Request[StagesListed], deed="list what they train with"):
    """All losses, optimisers, regularisers and constraints that the library has."""


@dataclass(frozen=True)
class Move:
    """Another value for one element of an input (`layer` is empty) or of a weight."""

    layer: str
    place: int
    index: tuple[int, ...]
    value: float


@dataclass(frozen=True)
class Beside:
    """The number, and what it was made of, where one element is moved."""

    value: Array
    outputs: Outputs


@dataclass(frozen=True, kw_only=True)
class PulledBack(Reply):
    """The number that was differentiated, what it was made of, and its gradients.

    `statistics` are the weights that are not learned, as the call has left them. `beside`: the
    number after each move.
    """

    value: Array
    outputs: Outputs
    gradients: tuple[Leaf, ...]  # of inputs and learned weights
    statistics: tuple[Leaf, ...] = ()
    beside: tuple[Beside, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PullBack(Request[PulledBack], deed="differentiate models", compiles=True):
    """Gradients of a model or a single layer by all that it reads.

    Of what: the sum of outputs times `cotangents` (a vector-Jacobian product), a `loss` of the
    first output, what regularisers ask (`penalty`), or several of these together. Arrays are
    named by their digests. `exact` is for models in float64. `moves`: the number is computed
    after each of them, too, one at a time, by whatever way gives no gradients. `border`: what
    losses keep away from 0 by, where it is not the library's own number. `jitter`: what every layer
    but the last gives is moved by about a last place, by this seed.
    """

    model: Model
    inputs: tuple[str, ...]
    cotangents: tuple[str | None, ...] = ()
    loss: Named | None = None
    truth: str = ""
    sample_weight: str = ""
    penalty: bool = False
    exact: bool = False
    moves: tuple[Move, ...] = ()
    border: float | None = None
    jitter: int | None = None


@dataclass(frozen=True, kw_only=True)
class GradientsApplied(Reply):
    """The weights after each update, and after the last one what the optimiser remembers."""

    weights: tuple[tuple[Array, ...], ...]
    memory: tuple[Leaf, ...]


@dataclass(frozen=True, kw_only=True)
class ApplyGradients(Request[GradientsApplied], deed="update weights by an optimiser"):
    """Feed an optimiser with given gradients: a row of them for each update.

    `rows` of a weight: its gradients are of these rows alone, as those of embeddings are on
    TensorFlow; elsewhere they are added into zeros.
    """

    optimizer: Named
    weights: tuple[str, ...]
    gradients: tuple[tuple[str, ...], ...]
    rows: tuple[Array | None, ...] = ()
    constraints: tuple[Named | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StepsTrained(Reply):
    """The loss of every step, and after each all weights of the model."""

    losses: tuple[float, ...]
    weights: tuple[tuple[Leaf, ...], ...]


@dataclass(frozen=True, kw_only=True)
class TrainSteps(Request[StepsTrained], deed="train models step by step", compiles=True):
    """Train a copy of a model on the same batch a few times, as the library does by itself."""

    model: Model
    inputs: tuple[str, ...]
    truth: str
    loss: Named
    optimizer: Named
    rounds: int
    sample_weight: str = ""
    exact: bool = False
