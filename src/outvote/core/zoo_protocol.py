"""What the zoo asks of workers, to build, train and export models; what it has of them then."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from outvote.core.protocol import File, Reply, Request


@dataclass(frozen=True)
class Made:
    """A model that was written, and the data that goes with it."""

    name: str
    model: Path
    data: Path
    layers: int
    weights: int
    seconds: float


@dataclass(frozen=True)
class ModelPlan:
    """What a worker needs to know to build a model of the zoo."""

    name: str
    family: str
    shape: tuple[int, ...]
    outputs: int
    vocabulary: int
    classifier: bool


@dataclass(frozen=True, kw_only=True)
class ZooModelBuilt(Reply):
    """The model as a file, and its size."""

    file: File
    layers: int
    weights: int


@dataclass(frozen=True, kw_only=True)
class BuildZooModel(Request[ZooModelBuilt], deed="build models of the zoo"):
    """Make a model with random weights whose outputs depend on the input, `x`."""

    plan: ModelPlan
    x: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class ZooModelTrained(ZooModelBuilt):
    """`score` is its accuracy or its mean absolute error."""

    score: float


@dataclass(frozen=True, kw_only=True)
class TrainZooModel(Request[ZooModelTrained], deed="train models of the zoo"):
    """Train a fresh model on `x`, `y`; its score is that on `x_test`, `y_test`."""

    plan: ModelPlan
    x: str
    y: str
    x_test: str
    y_test: str
    seed: int
    epochs: int
    batch: int
    rate: float


@dataclass(frozen=True, kw_only=True)
class DatasetLoaded(Reply):
    """Both halves as one."""

    x: str
    y: str


@dataclass(frozen=True, kw_only=True)
class LoadDataset(Request[DatasetLoaded], deed="load Keras' data sets"):
    """Load one of keras.datasets, from its cache or the network."""

    name: str
    vocabulary: int | None
    length: int


@dataclass(frozen=True, kw_only=True)
class ModelExported(Reply):
    """The graph as a file."""

    file: File


@dataclass(frozen=True, kw_only=True)
class ExportModel(Request[ModelExported], deed="export models to ONNX"):
    """Write a model of the zoo as an ONNX graph, its batch free."""

    file: File
