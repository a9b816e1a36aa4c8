"""What an exploration asks of workers: gradients, coverage, and searches by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from outvote.core.answers import Oracle
from outvote.core.arrays import Array
from outvote.core.model import Model
from outvote.core.protocol import Done, Reply, Request, ScriptText


@dataclass(frozen=True, kw_only=True)
class ExplorerOpened(Reply):
    """The layers of each model whose channels count as neurons, and widths of the answers."""

    layers: list[list[dict[str, Any]]]
    widths: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class OpenExplorer(Request[ExplorerOpened], deed="explore models", opens="exploration"):
    """Load the models of an exploration; a few inputs of the sample show the shapes."""

    models: tuple[Model, ...]
    sample: tuple[str, ...]
    kind: str  # classes, values or any
    skip: tuple[str, ...]
    threshold: float
    batch: int


@dataclass(frozen=True)
class Rules:
    """What a constraint must know of one input of the model. Arrays fit one instance."""

    low: Array  # the legal range
    high: Array
    step: float  # in units of the input
    rectangle: tuple[int, int] | None = None
    unit: Array | None = None  # size of one whole step of an integer feature
    increase: Array | None = None  # which features may grow
    decrease: Array | None = None

    def clip(self, x: Array) -> Array:
        return np.clip(x, self.low, self.high).astype(x.dtype)


@dataclass(frozen=True, kw_only=True)
class PrepareSearch(Request[Done], deed="explore models", within="exploration"):
    """Begin a search: what may change, when answers differ, and how to climb (equation 3)."""

    constraint: str  # the name of a built-in one
    script: ScriptText | None  # or one of the user's own
    rules: tuple[Rules, ...]  # for each input of the models
    oracle: Oracle
    lambda1: float
    lambda2: float
    iterations: int
    seed: int
    total: int


@dataclass(frozen=True, kw_only=True)
class SeedsSearched(Reply):
    """What one batch of seeds gave. Rows of arrays belong to the numbers in `index`."""

    tried: int
    unmoved: int
    flat: int
    first: float | None
    cpu: float
    index: Array
    iterations: Array
    chosen: Array
    already: Array
    inputs: tuple[Array, ...]
    answers: tuple[Array, ...]
    before: tuple[Array, ...]


@dataclass(frozen=True, kw_only=True)
class SearchSeeds(Request[SeedsSearched], deed="explore models", within="exploration"):
    """Lead the seeds from `start` to `stop` to differences; `KeepFinds` says which count."""

    seeds: tuple[str, ...]
    start: int
    stop: int
    cycle: int
    done: int


@dataclass(frozen=True, kw_only=True)
class FindsKept(Reply):
    """The coverage so far: the highest activation of every neuron, per model."""

    cpu: float
    best: tuple[Array, ...]


@dataclass(frozen=True, kw_only=True)
class KeepFinds(Request[FindsKept], deed="explore models", within="exploration"):
    """Cover these of the inputs that the last search has found."""

    rows: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ModelAnswers(Reply):
    """What each model answers."""

    answers: tuple[Array, ...]


@dataclass(frozen=True, kw_only=True)
class AskModels(Request[ModelAnswers], deed="explore models", within="exploration"):
    """Each model's answers to the inputs sent along."""

    inputs: tuple[Array, ...]


@dataclass(frozen=True, kw_only=True)
class Gradients(Reply):
    """One gradient for each input of the models."""

    gradients: tuple[Array, ...]


@dataclass(frozen=True, kw_only=True)
class FindGradients(Request[Gradients], deed="explore models", within="exploration"):
    """Gradients of the weighted answers; one array of weights per model."""

    inputs: tuple[Array, ...]
    weights: tuple[Array, ...]


@dataclass(frozen=True, kw_only=True)
class InputsMoved(Reply):
    """The inputs one step farther."""

    inputs: tuple[Array, ...]


@dataclass(frozen=True, kw_only=True)
class MoveInputs(Request[InputsMoved], deed="explore models", within="exploration"):
    """Move inputs once along the gradient of the weighted answers; a `fresh` walk starts here."""

    inputs: tuple[Array, ...]
    weights: tuple[Array, ...]
    fresh: bool


@dataclass(frozen=True)
class NeuronRows:
    """What a test set did to the neurons of one model: one number per neuron in each array."""

    best: Array  # highest scaled activation
    high: Array
    low: Array
    first: Array  # the first input that activated it
    top: Array  # whether it was among the strongest of its layer
    sections: Array | None = None  # of its range in training


@dataclass(frozen=True, kw_only=True)
class CoverageMeasured(Reply):
    """Per model, rows that can be merged with those of other test sets."""

    models: tuple[NeuronRows, ...]


@dataclass(frozen=True, kw_only=True)
class MeasureCoverage(Request[CoverageMeasured], deed="explore models", within="exploration"):
    """Coverage of a test set, sent along or stored; `profile`: low and high of every neuron in
    training, per model."""

    inputs: tuple[Array, ...] = ()
    stored: tuple[str, ...] = ()
    profile: tuple[tuple[Array, Array], ...] = ()
    section_count: int = 1
    top: int = 1
    done: int = 0
    total: int = 0
