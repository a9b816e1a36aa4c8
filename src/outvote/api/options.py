"""The keywords of every function: the options of its command, under the same names.

None of them is needed. What each means stands in the command's guide; that the lists are whole is
tested against the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

PathLike = str | Path
Names = Sequence[str]
Texts = str | Sequence[str]


class _Worker(TypedDict, total=False):
    out: PathLike  # a folder for the reports; without it nothing is written
    config: PathLike
    timeout: float
    memory: float


class CheckOptions(_Worker, total=False):
    """Of `check`."""

    targets: Names
    weights: PathLike
    twins: Names
    find_links: Texts
    custom: PathLike
    allow_code: bool
    allow_nan: bool
    allow_empty: bool
    every_layer: bool
    oracle: str
    train: bool
    loss: str
    optimizer: str
    steps: int
    count: int
    dim: Mapping[str, int]
    batch_size: int
    seed: int
    jobs: int
    cluster: str
    known: PathLike
    fail_on: str
    baseline: PathLike
    metric: Names
    k: int
    class_threshold: float
    mad_threshold: float
    p: float
    tolerance: float
    noise_factor: float
    minimise: float
    confirm: int


class FuzzOptions(_Worker, total=False):
    """Of `fuzz`."""

    targets: Names
    strategy: str
    compare: str
    budget: int | str  # 500 mutants, or a time: "20m"
    until_coverage: float
    resume: PathLike
    replay: PathLike
    cluster: str
    seed: int
    jobs: int
    inputs: int
    rules: Names
    oracle: str
    mad_threshold: float
    breed_known: bool
    no_line_coverage: bool
    find_links: Texts
    known: PathLike
    fail_on: str
    baseline: PathLike
    minimise: float
    confirm: int
    search: str
    population: int
    elite: int
    crossover: float
    mutation: float
    generations: int


class LocalizeOptions(_Worker, total=False):
    """Of `localize`."""

    targets: Names
    t1: float
    t2: float
    find_links: Texts
    seed: int


class NanOptions(_Worker, total=False):
    """Of `nan`."""

    target: str
    level: str
    budget: str  # a time: "60s"
    find_links: Texts
    seed: int


class BisectOptions(_Worker, total=False):
    """Of `bisect`."""

    package: str
    target: str
    against: Names
    cluster: str
    find_links: Texts
    seed: int
    train: bool
    loss: str
    optimizer: str
    steps: int


class _Explored(_Worker, total=False):
    target: str
    custom: PathLike
    allow_code: bool
    count: int
    batch_size: int
    skip: Names


class ExploreOptions(_Explored, total=False):
    """Of `explore`."""

    targets: Names
    confirm_on: str
    seed: int
    known: PathLike
    lambda1: float
    lambda2: float
    step: float
    threshold: float
    iterations: int
    until_coverage: float
    no_baselines: bool
    answers: str
    tolerance: float
    bins: Sequence[float]
    constraint: str
    range: tuple[float, float]
    rectangle: tuple[int, int]
    features: PathLike
    groups: Names
    retrain: PathLike
    test: PathLike
    epochs: int
    add: int


class CoverageOptions(_Explored, total=False):
    """Of `coverage`."""

    threshold: float
    sections: int
    top: int
    state: PathLike


class PollutionOptions(_Explored, total=False):
    """Of `pollution`."""

    constraint: str
    iterations: int
    step: float
    seed: int


class TargetsOptions(TypedDict, total=False):
    """Of `targets`."""

    config: PathLike
    find_links: Texts
