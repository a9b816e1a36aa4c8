"""Builds and trains models of the zoo in a worker, and puts them where they belong."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from outvote.core.arrays import Array
from outvote.core.case import load_data
from outvote.core.errors import UsageError
from outvote.core.files import save_npz
from outvote.core.protocol import R, Request
from outvote.core.target import Run, Target
from outvote.core.zoo_protocol import (
    BuildZooModel,
    LoadDataset,
    Made,
    ModelPlan,
    TrainZooModel,
    ZooModelBuilt,
)
from outvote.dialects.keras.targets import BUILT_IN
from outvote.dialects.keras.zoo.catalog import ZooEntry
from outvote.dialects.keras.zoo.samples import Samples, digits, fitted, generated
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled
from outvote.run.watch import Watch, silent
from outvote.targets.choose import choose, install_hint, missing_packages

TRAINERS = ("tensorflow", "jax", "torch")  # the backends that build and train, first choice first
DATASETS = ("mnist", "fashion_mnist", "cifar10", "cifar100", "imdb")
KERAS = "keras:"
_INPUTS = 32  # in the data of a model that was built
_GENERATED = 2000  # to train on
_TESTED = 0.2  # of the samples
_BATCH = 32  # half of it for few samples: a short training makes few steps


@dataclass(frozen=True)
class Trained:
    """A model that was trained: `score` is its accuracy or its mean absolute error."""

    made: Made
    source: str
    trained_on: int
    tested_on: int
    epochs: int
    score: float
    guess: float  # the score of one and the same answer to everything
    is_classifier: bool


def trainer(name: str | None) -> Target:
    """The target that was named, or the first installed one, to build or train on."""
    if name is not None and name not in TRAINERS:
        raise UsageError(f"--target {name!r} cannot train; choose from {', '.join(TRAINERS)}")
    for candidate in (name,) if name else TRAINERS:
        if name or not missing_packages(BUILT_IN[candidate]):
            return choose([candidate], BUILT_IN)[0]
    raise UsageError(
        f"building a model needs one of {', '.join(TRAINERS)}, and none is installed; "
        f"{install_hint('tensorflow')}"
    )


@dataclass(frozen=True)
class ZooBench:
    """One worker, the folder that models go to, and a folder for what is not finished."""

    pool: Pool
    target: str
    out: Path
    unfinished: Path
    watch: Watch

    def ask(self, text: str, request: Request[R]) -> Run[R]:
        """The worker's answer; what it could not do is an error for the user."""
        with self.watch(text, self.pool, [self.target]):
            run = ask_settled(self.pool, self.target, request)
        if not run.ok:
            reason = " ".join(run.message.split())
            told = reason if run.refused else f"{text} failed on {self.target}: {reason}"
            raise UsageError(told)
        return run

    def keep(self, entry: ZooEntry, x: Array, y: Array, run: Run[ZooModelBuilt]) -> Made:
        """Move what is finished into place, the model last: whoever sees it sees its data."""
        data = save_npz(self.out / f"{entry.name}.npz", {"x": x, "y": y})
        self.pool.blobs.copy_file(run.reply.file.digest, self.unfinished / "model.keras")
        model = (self.unfinished / "model.keras").replace(self.out / f"{entry.name}.keras")
        reply = run.reply
        return Made(entry.name, model, data, reply.layers, reply.weights, run.seconds)


@contextmanager
def bench(
    out: Path, target: Target, watch: Watch = silent, pool: Pool | None = None
) -> Iterator[ZooBench]:
    """A started worker: of its own, or that of a pool which has the target."""
    with ExitStack() as stack:
        _make_folder(out)
        unfinished = tempfile.TemporaryDirectory(dir=out, prefix=".unfinished-")
        folder = Path(stack.enter_context(unfinished))
        pool = pool or stack.enter_context(LocalPool([target]))  # ends before the folder goes
        with watch("Starting", pool, [target.name]):
            hello = pool.start([target.name])[target.name]
        if not hello.ok:
            raise UsageError(f"target {target.name!r} could not be started: {hello.message}")
        yield ZooBench(pool, target.name, out, folder, watch)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{out} is a file; name a folder with --out DIR") from None


def build(bench: ZooBench, entry: ZooEntry, seed: int) -> Made:
    """A model with random weights whose outputs depend on the input, and inputs that fit."""
    x, y = generated(entry, 3 * _INPUTS, seed)
    stored = bench.pool.blobs.put(x[_INPUTS:])
    request = BuildZooModel(plan=_plan(entry), x=stored, seed=seed)
    run = bench.ask(f"Building {entry.name}", request)
    return bench.keep(entry, x[:_INPUTS], y[:_INPUTS], run)


@dataclass(frozen=True)
class Source:
    """What to train on: arrays, one of keras.datasets, or (without a name) each model's own."""

    name: str | None = None
    arrays: Mapping[str, Array] = field(default_factory=dict)


def source_of(data: str | None, entries: Iterable[ZooEntry]) -> Source:
    """What `--data` names, read or refused before any framework is started."""
    if data is None:
        wanted = any(entry.data == "digits" for entry in entries)
        return Source(arrays=digits() if wanted else {})
    if not data.startswith(KERAS):
        return Source(data, load_data(Path(data)))
    if data.removeprefix(KERAS) not in DATASETS:
        known = ", ".join(KERAS + name for name in DATASETS)
        raise UsageError(f"--data {data} is unknown; choose from {known}")
    return Source(data)


def train(
    bench: ZooBench,
    entry: ZooEntry,
    given: Source,
    epochs: int | None = None,
    count: int | None = None,
    seed: int = 0,
) -> Trained:
    """Train on what is given; the samples that the model is tested with are kept beside it."""
    entry, (x, y), source = _samples(bench, entry, given, seed)
    order = np.random.default_rng(seed).permutation(len(x))[: count or entry.samples]
    held_out = max(1, round(_TESTED * len(order)))
    test, rest = order[:held_out], order[held_out:]
    epochs = epochs or entry.epochs
    batch = _BATCH if len(rest) > 20 * _BATCH else _BATCH // 2
    put = bench.pool.blobs.put
    request = TrainZooModel(
        plan=_plan(entry),
        x=put(x[rest]),
        y=put(y[rest]),
        x_test=put(x[test]),
        y_test=put(y[test]),
        seed=seed,
        epochs=epochs,
        batch=batch,
        rate=entry.rate,
        steps=epochs * -(-len(rest) // batch),
    )
    text = f"Training {entry.name} on {len(rest)} samples of {source}, epochs: {epochs}"
    run = bench.ask(text, request)
    made = bench.keep(entry, x[test], y[test], run)
    guess = _guess(entry, y[rest], y[test])
    score, counts = run.reply.score, (len(rest), len(test))
    return Trained(made, source, *counts, epochs, score, guess, entry.is_classifier)


def _guess(entry: ZooEntry, y: Array, y_test: Array) -> float:
    if entry.is_classifier:
        return float(np.mean(y_test == np.bincount(y).argmax()))
    return float(np.abs(y_test - y.mean(axis=0)).mean())


def _samples(
    bench: ZooBench, entry: ZooEntry, given: Source, seed: int
) -> tuple[ZooEntry, Samples, str]:
    if given.name is None and entry.data != "digits":
        return entry, generated(entry, _GENERATED, seed), f"generated {entry.data}"
    source = given.name or "scikit-learn's digits"
    arrays = given.arrays
    if source.startswith(KERAS):
        arrays = _keras_dataset(bench, entry, source.removeprefix(KERAS))
    return *fitted(entry, arrays, source), source


def _keras_dataset(bench: ZooBench, entry: ZooEntry, name: str) -> dict[str, Array]:
    request = LoadDataset(name=name, vocabulary=entry.vocabulary or None, length=entry.shape[0])
    reply = bench.ask(f"Loading keras.datasets.{name}", request).reply
    get = bench.pool.blobs.get
    return {"x": np.array(get(reply.x)), "y": np.array(get(reply.y))}


def _plan(entry: ZooEntry) -> ModelPlan:
    return ModelPlan(
        entry.name,
        entry.family,
        entry.shape,
        entry.outputs,
        entry.vocabulary,
        entry.is_classifier,
    )
