"""AUDEE's search: the operators by hand, chromosomes that become cases, and searches on targets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from conftest import fake
from outvote.bench.reader import read_file
from outvote.campaign.probes.evolution import Evolution
from outvote.campaign.probes.genome import Genome
from outvote.core.blobs import BlobStore
from outvote.core.cuts import ended_at
from outvote.core.model import Input, Layer, Model, Ref, Weight
from outvote.dialects.keras.logits import logits_apart
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.search.genetic import GeneticSettings, Population, inconsistency_fitness, nan_fitness


def population(**more: float) -> Population:
    settings = GeneticSettings(**{"population": 8, "elite": 3, **more})  # type: ignore[arg-type]
    return Population(np.zeros(4), np.ones(4), settings, np.random.default_rng(0))


def test_the_first_population_is_the_seed_and_cauchy_noise_around_it() -> None:
    rows = population(population=4000, noise=1.0).ask()
    assert (rows[0] == 0).all()
    quartiles = np.quantile(rows[1:].reshape(-1), [0.25, 0.5, 0.75])
    assert quartiles == pytest.approx([-1, 0, 1], abs=0.06)  # those of the Cauchy distribution


def test_the_elite_stays_and_children_are_theirs_gene_by_gene() -> None:
    pool = population(mutation=0.0)
    before = pool.ask()
    pool.tell(np.arange(8.0))
    after = pool.ask()
    assert np.array_equal(after[:3], before[[7, 6, 5]])
    for child in after[3:]:
        assert all(any(child[g] == before[p, g] for p in (7, 6, 5)) for g in range(4))
    assert any(not any(np.array_equal(c, p) for p in before) for c in after[3:])


def test_crossover_takes_the_share_of_genes_and_mutation_moves_children() -> None:
    rng = np.random.default_rng(1)
    settings = GeneticSettings(population=4, elite=2, crossover=1.0, mutation=0.0)
    pool = Population(np.zeros(1000), np.ones(1000), settings, rng)
    before = pool.ask()
    pool.tell(np.array([4.0, 3.0, 2.0, 1.0]))
    for child in pool.ask()[2:]:  # with r1 = 1 all genes come from the first parent
        assert any(np.array_equal(child, parent) for parent in before[:2])
    noisy = population(mutation=1.0)
    first = noisy.ask()
    noisy.tell(np.arange(8.0))
    for child in noisy.ask()[3:]:
        assert all(child[g] not in first[[7, 6, 5], g] for g in range(4))


def test_nan_is_the_best_fitness_and_genes_stay_finite() -> None:
    pool = population(generations=2)
    chosen = pool.ask()[4].copy()
    fitness = np.zeros(8)
    fitness[4] = np.nan
    pool.tell(fitness)
    assert np.array_equal(pool.ask()[0], chosen)
    settings = GeneticSettings(population=50, elite=2, noise=1e38)
    wild = Population(np.zeros(9), np.ones(9), settings, np.random.default_rng(0))
    assert np.isfinite(wild.ask()).all()


def test_both_fitness_functions() -> None:
    a, b = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[1.0, 4.0], [0.0, np.nan]])
    assert inconsistency_fitness([a, b])[0] == 1.0
    assert np.isnan(inconsistency_fitness([a, b])[1])
    assert inconsistency_fitness([b, b]).tolist() == [0.0, 0.0]
    assert inconsistency_fitness([a, a, b])[0] == 1.0
    assert nan_fitness(np.array([[-1.0, 5.0], [2.0, 2.0]])).tolist() == [6.0, 0.0]


def test_one_logit_spreads_from_zero_and_infinity_spreads_infinitely() -> None:
    """One logit gave no guidance; where all were infinite the search broke off."""
    assert nan_fitness(np.array([[-3.0], [2.0], [0.0]])).tolist() == [3.0, 2.0, 0.0]
    endless = np.array([[np.inf, np.inf], [-np.inf, 1.0], [np.nan, 1.0], [1.0, 2.0]])
    assert nan_fitness(endless).tolist() == [np.inf, np.inf, np.inf, 1.0]
    assert nan_fitness(np.array([[np.inf], [-np.inf]])).tolist() == [np.inf, np.inf]


def layer(name: str, kind: str, reads: str, **config: object) -> Layer:
    return Layer(name, kind, config, args=[{"$ref": [reads, 0]}])


def test_the_logits_stand_before_what_makes_probabilities() -> None:
    inputs = (Input("x", (None, 4), "float32"),)
    dense = layer("d", "Dense", "x", activation="softmax")
    fused = Model("m", inputs, (dense,), (Ref("d"),), "keras")
    assert ended_at(*logits_apart(fused)).layers[0].config["activation"] == "linear"
    apart, ref = logits_apart(fused)
    assert [x.kind for x in apart.layers] == ["Dense", "Activation"]
    assert (apart.outputs, ref) == ((Ref("d_activation"),), Ref("d"))
    two = (layer("d", "Dense", "x"), layer("s", "Softmax", "d"))
    squashed = Model("m", inputs, two, (Ref("s"),), "keras")
    assert ended_at(*logits_apart(squashed)).outputs == (Ref("d"),)
    plain = Model("m", inputs, (layer("r", "ReLU", "x"),), (Ref("r"),), "keras")
    assert ended_at(*logits_apart(plain)) == plain


def test_a_chromosome_becomes_inputs_and_weights(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path)
    kernel = np.arange(6, dtype=np.float32).reshape(2, 3)
    held = Weight("kernel", blobs.put(kernel), (2, 3))
    spread = Weight("moving_variance", blobs.put(np.ones(3, np.float32)), (3,))
    first = Layer("a", "Dense", {}, args=[{"$ref": ["x", 0]}], weights=(held, spread))
    again = Layer("b", "Dense", {}, [{"$ref": ["a", 0]}], weights=(held, spread), shares="a")
    model = Model("m", (Input("x", (None, 2), "float32"),), (first, again), (Ref("b"),), "keras")
    x = np.array([[1.0, 3.0]], np.float32)
    both = Genome(model, [x], ("input", "weight"), blobs)
    assert both.first.tolist() == [1, 3, 0, 1, 2, 3, 4, 5, 1, 1, 1]
    assert both.scale[:2].tolist() == [1, 1]  # the deviation of 1 and 3
    row = both.first + 1
    row[-1] = -7
    (fed,) = both.inputs(np.stack([both.first, row]))
    assert fed.tolist() == [[1, 3], [2, 4]]
    made = both.model_of(row)
    assert made.layers[0].weights == made.layers[1].weights  # a shared layer stays one
    assert np.array_equal(blobs.get(made.layers[0].weights[0].digest), kernel + 1)
    assert blobs.get(made.layers[0].weights[1].digest).min() == 0  # never a negative variance
    only = Genome(model, [x], ("input",), blobs)
    assert only.shares_weights
    assert only.model_of(row) is model
    codes = Genome(model, [np.array([[2, 9]], np.int32)], ("input",), blobs)
    (legal,) = codes.inputs(np.array([[1e30, 3.4]]))
    assert (legal.tolist(), legal.dtype.name) == ([[9, 3]], "int32")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with LocalPool([fake("a"), fake("b", "murmur:d2"), fake("honest")]) as opened:
        opened.start()
        yield opened


def read(pool: Pool, path: Path) -> Model:
    return read_file(pool, "a", path).reply.model


@pytest.mark.parametrize("levels", [("input",), ("weight",), ("input", "weight")])
@pytest.mark.slow
def test_the_search_amplifies_what_two_targets_differ_by(
    pool: Pool, fake_model: Path, levels: tuple[str, ...]
) -> None:
    model = read(pool, fake_model)
    x = np.random.default_rng(2).normal(size=(1, 4)).astype("float32")
    genome = Genome(model, [x], levels, pool.blobs)
    settings = GeneticSettings(generations=4, noise=0.5)
    found = Evolution(pool, ["a", "b"], settings).search(genome, np.random.default_rng(0))
    assert found.fitness > 2 * found.before > 0
    assert found.requests <= found.evaluations <= 50
    assert (found.requests < found.evaluations) == (levels == ("input",)), "one batch"
    same = Evolution(pool, ["a", "honest"], settings).search(genome, np.random.default_rng(0))
    assert (same.fitness, same.failure) == (0.0, "")


def test_on_one_target_the_search_ends_at_nan(pool: Pool, fake_model: Path) -> None:
    model = read(pool, fake_model)
    x = np.full((1, 4), 3e37, np.float32)
    genome = Genome(model, [x], ("input",), pool.blobs)
    settings = GeneticSettings(generations=30, noise=5.0)
    found = Evolution(pool, ["a"], settings).search(genome, np.random.default_rng(0))
    assert found.failure == "nan"


def test_infinite_logits_everywhere_end_no_search(pool: LocalPool, tmp_path: Path) -> None:
    """All logits infinite and none NaN: every chromosome is as fit as any."""
    layers = [{"name": f"s{i}", "kind": "Scale", "inputs": [f"s{i - 1}" if i else "x"],
               "config": {"by": 1e30}} for i in range(3)]  # fmt: skip
    path = tmp_path / "huge.json"
    data = {"class_name": "FakeModel", "input": [None, 2], "output": [None, 2], "layers": layers}
    path.write_text(json.dumps(data))
    genome = Genome(read(pool, path), [np.ones((1, 2), np.float32)], ("input",), pool.blobs)
    settings = GeneticSettings(generations=2, noise=0.0)
    found = Evolution(pool, ["a"], settings).search(genome, np.random.default_rng(0))
    assert (found.fitness, found.failure) == (np.inf, "")


@pytest.mark.slow
def test_the_time_may_be_spent(pool: Pool, fake_model: Path) -> None:
    genome = Genome(read(pool, fake_model), [np.ones((1, 4), np.float32)], ("input",), pool.blobs)
    evolution = Evolution(pool, ["a", "honest"], GeneticSettings())
    assert evolution.search(genome, np.random.default_rng(0), lambda: True).evaluations == 10
