"""The contract of every mutation rule, on chains, branches, shared layers, RNNs, transformers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from outvote.bench.reader import read_file
from outvote.core.model import Layer, Ref
from outvote.core.protocol import ListKinds, Ran, RunModel
from outvote.core.target import Run
from outvote.dialects.keras.mutate.catalogue import NOT_DRAWN, Catalogue
from outvote.dialects.keras.mutate.chains import Chain
from outvote.dialects.keras.mutate.maker import Maker
from outvote.dialects.keras.mutate.parameters import PARAMETERS
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.mutate.unusual import WAYS
from outvote.dialects.keras.mutate.values import LEFT_ALONE
from outvote.mutate.neurons import neurons_of
from outvote.mutate.registry import Impossible, all_rules, mutate
from outvote.mutate.subject import Subject
from outvote.run.pool import Pool, asker

pytestmark = pytest.mark.frameworks
TARGETS = ("tensorflow", "jax", "torch")
MODELS = {
    "chain": """
        model = keras.Sequential([
            keras.Input((8, 8, 2)),
            layers.Conv2D(4, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.Conv2D(4, 3, padding="same", activation="tanh"),
            layers.MaxPooling2D(2),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.Flatten(),
            layers.Dense(6, activation="relu"),
            layers.Dense(5, activation="softmax")])""",
    "branches, a shared layer and a nested model": """
        shared = layers.Dense(6, activation="relu", name="shared")
        inner_in = keras.Input((6,))
        inner = keras.Model(inner_in, layers.Dense(6, activation="tanh")(inner_in), name="inner")
        a, b = keras.Input((6,)), keras.Input((6,))
        x, y = shared(a), shared(b)
        z = layers.Add()([inner(x), layers.LayerNormalization()(y)])
        z = layers.Concatenate()([z, layers.Dropout(0.2)(x)])
        model = keras.Model([a, b], [layers.Dense(4, activation="softmax")(z), y])""",
    "recurrent": """
        model = keras.Sequential([
            keras.Input((5, 3)),
            layers.LSTM(4, return_sequences=True),
            layers.GRU(4, return_sequences=True, reset_after=False),
            layers.SimpleRNN(4),
            layers.Dense(4, activation="sigmoid"),
            layers.Dense(2)])""",
    "transformer": """
        ids = keras.Input((6,), dtype="int32")
        x = layers.Embedding(9, 8, mask_zero=True)(ids)
        y = layers.MultiHeadAttention(2, 4)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, y]))
        y = layers.Dense(8)(layers.Dense(12, activation="gelu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, y]))
        model = keras.Model(ids, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))""",
}
RULES = all_rules("keras")
FREE = ("BR", "FL")  # rules that draw what they like


@dataclass(frozen=True)
class Bench:
    """A pool with the tools that rules work with."""

    pool: Pool
    tools: KerasTools
    subjects: dict[str, Subject]

    def run(self, subject: Subject, names: tuple[str, ...] = TARGETS) -> dict[str, Run[Ran]]:
        rng = np.random.default_rng(0)
        inputs = []
        for item in subject.model.inputs:
            shape = (2, *(n or 1 for n in item.shape[1:]))
            floats = "float" in item.dtype
            value = rng.normal(size=shape) if floats else rng.integers(0, 9, shape)
            inputs.append(value if subject.inputs else value.astype(item.dtype))
        fed = subject.inputs or inputs  # its own, where the rule drew some
        digests = tuple(map(self.pool.blobs.put, fed))
        request = RunModel(model=subject.model, inputs=digests, batch=len(fed[0]), steps=50)
        return self.pool.ask_all(names, request)


@pytest.fixture(scope="module")
def bench(real_pool: Pool, keras_file: Callable[..., Path]) -> Bench:
    ask = asker(real_pool, "torch")
    catalogue = Catalogue.of(ask(ListKinds()).reply)
    tools = KerasTools(real_pool.blobs, Maker(ask, real_pool.blobs), catalogue)
    subjects = {}
    for name, snippet in MODELS.items():
        path = keras_file(snippet.replace("\n        ", "\n").strip())
        read = read_file(real_pool, "torch", path)
        assert read.ok, read.message
        subjects[name] = Subject.of(read.reply.model, read.reply.specs)
    return Bench(real_pool, tools, subjects)


def text(subject: Subject) -> str:
    return json.dumps(subject.model.to_json(), sort_keys=True)


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("rule", list(RULES))
def test_a_mutant_is_valid_on_every_target_repeatable_and_leaves_its_parent_alone(
    bench: Bench, rule: str, model: str
) -> None:
    parent = bench.subjects[model]
    before = text(parent)
    made = ran = 0
    for seed in range(2):
        mutant = mutate(RULES[rule], parent, bench.tools, (seed,))
        again = mutate(RULES[rule], parent, bench.tools, (seed,))
        assert text(parent) == before
        if mutant is None:
            assert again is None
            continue
        made += 1
        assert again is not None
        assert text(again) == text(mutant)
        assert text(mutant) != before
        assert set(mutant.specs) == {
            *(item.name for item in mutant.model.inputs),
            *(layer.name for layer in mutant.model.layers),
        }
        for name, run in bench.run(mutant).items():
            if rule in FREE and not run.ok:  # what is drawn there may be refused
                continue
            assert run.ok, f"{rule} on {name}: {run.message}"
            ran += 1
            shapes = [array.shape[1:] for array in run.reply.outputs.arrays]
            if rule != "FL":  # which stands alone
                assert shapes == [parent.spec(ref).place for ref in parent.model.outputs]
    if rule in FREE:
        assert ran, "nothing that was drawn runs on any target"
    if rule in ("LA", "LR", "GF", "NAI"):
        assert made, f"{rule} applies to every one of these models"


def changed(before: Subject, after: Subject) -> list[tuple[Layer, Layer]]:
    """Layers that are in both, but not alike."""
    pairs = [(before.model.layer(x.name), x) for x in after.model.layers if x.name in before.specs]
    return [(a, b) for a, b in pairs if a.object_digest != b.object_digest]


def make(bench: Bench, rule: str, model: str = "chain", seed: int = 0) -> Subject:
    for attempt in range(10):
        found = mutate(RULES[rule], bench.subjects[model], bench.tools, (seed, attempt))
        if found is not None:
            return found
    raise AssertionError(f"{rule} made no mutant")


def test_structural_rules_do_what_their_names_say(bench: Bench) -> None:
    parent = bench.subjects["chain"]
    count = len(parent.model.layers)
    assert len(make(bench, "LR").model.layers) == count - 1
    copied = make(bench, "LC").model.layers
    assert len(copied) == count + 1
    assert len({layer.object_digest for layer in copied}) == count
    assert len(make(bench, "LA").model.layers) == count + 1
    assert len(make(bench, "MLA").model.layers) > count + 1
    swapped = changed(parent, make(bench, "LS"))
    assert len(swapped) == 2
    (a_before, a_after), (b_before, b_after) = swapped
    assert (a_after.kind, b_after.kind) == (b_before.kind, a_before.kind)
    assert [w.digest for w in a_after.weights] == [w.digest for w in b_before.weights]


def test_activations_are_removed_and_replaced(bench: Bench) -> None:
    parent = bench.subjects["chain"]
    ((before, after),) = changed(parent, make(bench, "AFRm"))
    assert before.config["activation"] != "linear"
    assert after.config["activation"] == "linear"
    seen = set()
    for seed in range(12):
        ((before, after),) = changed(parent, make(bench, "AFRp", seed=seed))
        assert after.config["activation"] != before.config["activation"]
        seen.add(after.config["activation"])
    assert len(seen) > 5


def kernels(bench: Bench, rule: str) -> tuple[Layer, np.ndarray, np.ndarray]:
    parent = bench.subjects["recurrent"]
    ((before, after),) = changed(parent, make(bench, rule, "recurrent"))
    blobs = bench.tools.blobs
    old, new = (np.array(blobs.get(x.weights[0].digest)) for x in (before, after))
    return before, old, new


def test_inner_rules_touch_the_share_of_neurons_that_the_paper_names(bench: Bench) -> None:
    for rule in ("GF", "WS", "NAI"):
        layer, old, new = kernels(bench, rule)
        count = neurons_of(bench.subjects["recurrent"], bench.tools).count(layer)
        columns = [j for j in range(count) if not np.array_equal(old[:, j], new[:, j])]
        assert 1 <= len(columns) <= max(1, round(0.3 * count)), rule
        for j in columns:
            if rule == "WS":
                assert sorted(old[:, j]) == sorted(new[:, j])
            elif rule == "NAI":
                assert np.array_equal(new[:, j], -old[:, j])
            else:
                assert np.abs(new[:, j] - old[:, j]).max() < 0.8 * old.std()


def test_two_neurons_change_places(bench: Bench) -> None:
    layer, old, new = kernels(bench, "NS")
    moved = [j for j in range(old.shape[1]) if not np.array_equal(old[:, j], new[:, j])]
    assert len(moved) == 2
    a, b = moved
    assert np.array_equal(old[:, a], new[:, b])
    assert np.array_equal(old[:, b], new[:, a])
    assert layer.kind


def test_a_blocked_neuron_has_no_effect_behind_it(bench: Bench) -> None:
    """Whatever the blocked neurons give, the outputs stay the same."""
    parent = bench.subjects["chain"]
    for seed in range(4):
        mutant = make(bench, "NEB", seed=seed)
        for before, after in changed(parent, mutant):
            old, new = (
                np.array(bench.tools.blobs.get(x.weights[0].digest)) for x in (before, after)
            )
            rows = np.abs(new).reshape(-1, *new.shape[-2:]).sum(axis=(0, 2))
            assert (rows == 0).any()
            kept = rows != 0
            assert np.array_equal(old[..., kept, :], new[..., kept, :])


def test_a_shared_layer_stays_one(bench: Bench) -> None:
    parent = bench.subjects["branches, a shared layer and a nested model"]
    for rule in ("GF", "NAI", "NS", "WS", "AFRm"):
        for seed in range(4):
            mutant = mutate(RULES[rule], parent, bench.tools, (seed,))
            assert mutant is not None
            calls = mutant.calls_of(mutant.model.layer("shared"))
            assert len(calls) == 2
            assert len({layer.object_digest for layer in calls}) == 1


def test_the_catalogue_covers_the_framework_and_says_what_it_leaves_out(bench: Bench) -> None:
    catalogue = bench.tools.catalogue
    assert len(catalogue.kinds) >= 60
    assert all(catalogue.not_covered.values())
    unknown = {k: r for k, r in catalogue.not_covered.items() if "no values are known" in r}
    assert unknown == {}
    stale = set(NOT_DRAWN) - set(catalogue.not_covered)
    assert stale == set()
    found = bench.pool.ask("torch", ListKinds()).reply.kinds
    parameters = {p["name"] for k in catalogue.kinds for p in found[k]}
    assert parameters - set(PARAMETERS) - LEFT_ALONE == set()


def test_most_kinds_can_be_made_where_they_fit(bench: Bench) -> None:
    """Each kind is drawn a few times on a tensor of its rank, and led back to the first shape."""
    parent = bench.subjects["chain"]
    start = next(Ref(layer.name) for layer in parent.model.layers if layer.kind == "Flatten")
    missing = []
    for kind in bench.tools.catalogue.kinds.values():
        rng = np.random.default_rng(1)
        chain = Chain(parent, start, bench.tools, rng)
        try:
            chain.fit(kind)
            chain.draw([kind], keep=False)
            chain.restore(parent.spec(start))
        except Impossible as reason:
            missing.append((kind.name, str(reason)))
            continue
        mutant = chain.inserted()
        run = bench.run(mutant, ("torch",))["torch"]
        if not run.ok:
            missing.append((kind.name, run.message[:200]))
    assert len(missing) <= 3, missing


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_unusual_tensors_have_the_property_they_are_made_for(
    bench: Bench, way: Callable[[Chain], None]
) -> None:
    parent = bench.subjects["recurrent"]
    chain = Chain(parent, Ref(parent.model.inputs[0].name), bench.tools, np.random.default_rng(0))
    way(chain)
    grown = parent.with_layers([*parent.model.layers, *chain.layers], [chain.end], chain.specs)
    run = bench.run(grown, ("torch",))["torch"]
    assert run.ok, run.message
    (array,) = run.reply.outputs.arrays
    holds = {
        "whole_numbers": array.dtype.kind == "i",
        "ties": len(np.unique(array)) < array.size,
        "zeros": not array.any(),
        "infinities": np.isinf(array).any() and np.isfinite(array).any(),
        "nans": np.isnan(array).any() and np.isfinite(array).any(),
        "holes": (array == 0).any() and (array != 0).any(),
    }
    assert holds[way.__name__], array
