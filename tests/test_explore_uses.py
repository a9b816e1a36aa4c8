"""Coverage of a growing test set, retraining, pollution, and the search between targets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.commands.coverage.job import CoverageJob
from outvote.commands.coverage.run import coverage_in
from outvote.commands.explore.between import between_in
from outvote.commands.explore.job import BetweenTargets
from outvote.commands.explore.result import explore_result
from outvote.commands.pollution.job import Evidence
from outvote.commands.pollution.run import find_suspects, pollution_in
from outvote.commands.record import recording
from outvote.core.errors import UsageError
from outvote.dialects.keras.targets import BUILT_IN
from outvote.explore.explore import explore_in
from outvote.explore.job import Explored, ExploreJob, Retraining
from outvote.explore.similarity import ssim
from outvote.explore.votes import labels_of, majority
from outvote.findings.gate import STRICT
from outvote.report import rendered
from outvote.run.pool import Pool
from outvote.run.watch import silent
from test_explore import PICTURES, SOFTMAX

ROOT = Path(__file__).parent.parent
TORCH = BUILT_IN["torch"]

CONV = """
keras.utils.set_random_seed({seed})
model = keras.Sequential([keras.Input((8, 8, 1)), layers.Conv2D(4, 3, activation="relu"),
    layers.GlobalAveragePooling2D(), layers.Dropout(0.5), layers.Dense(3, activation="softmax")])
"""


def three_models(keras_file: Callable[..., Path]) -> tuple[Path, ...]:
    """Classifiers that agree on most pictures, and can be split."""
    return tuple(
        keras_file(PICTURES.format(name=f"m{n}", end=SOFTMAX, number=n, apart=0.4))
        for n in range(3)
    )


def data(count: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"x": rng.random((count, 8, 8, 1)).astype("float32")}


@pytest.mark.frameworks
def test_coverage_of_a_growing_set_is_that_of_the_whole(
    real_pool: Pool, keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    path = keras_file(CONV.format(seed=1))
    whole, train = data(30), data(20, seed=5)
    job = CoverageJob(path, whole, TORCH, threshold=0.4, train=train, sections=10, top=1)
    at_once = coverage_in(real_pool, job)
    state = tmp_path / "state.npz"
    for rows, profile in ((slice(0, 11), train), (slice(11, 30), None)):
        part = {"x": whole["x"][rows]}
        grown = coverage_in(
            real_pool,
            CoverageJob(path, part, TORCH, 0.4, profile, sections=10, top=1, state=state),
        )
    assert grown["coverage"] == at_once["coverage"]
    assert grown["data"]["tests"] == 30
    assert grown["data"]["instances"] == 19
    criteria = at_once["coverage"]["criteria"]
    assert set(criteria) == {"top_1", "k_multisection", "boundary", "strong_activation"}
    assert all(0 < value <= 1 for name, value in criteria.items() if name != "boundary")


@pytest.mark.frameworks
def test_neuron_coverage_is_what_the_definition_says(
    real_pool: Pool, keras_file: Callable[..., Path]
) -> None:
    """A convolution by hand: channel means, scaled by the smallest and largest of the layer."""
    snippet = """
x = keras.Input((2, 2, 1))
model = keras.Model(x, layers.Flatten()(layers.Conv2D(3, 1, use_bias=False)(x)))
model.layers[1].set_weights([np.array([[[[1.0, 0.5, -1.0]]]])])
"""
    x = np.array([1.0, 1.0, 1.0, 3.0]).reshape(1, 2, 2, 1).astype("float32")
    result = coverage_in(real_pool, CoverageJob(keras_file(snippet), {"x": x}, TORCH, 0.7))
    # Outputs lie between -3 and 3; the means 1.5, 0.75, -1.5 become 0.75, 0.625, 0.25.
    assert (
        result["coverage"]["layers"]
        == [{"name": "conv2d", "kind": "Conv2D", "neurons": 3, "covered": 1}]
        or result["coverage"]["layers"][0]["covered"] == 1
    )
    shares = dict(map(tuple, result["coverage"]["thresholds"]))
    assert (shares[0.2], shares[0.6], shares[0.7], shares[0.75]) == (1.0, 2 / 3, 1 / 3, 0.0)


@pytest.mark.frameworks
def test_a_state_of_another_model_is_refused(
    real_pool: Pool, keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    state = tmp_path / "state.npz"
    coverage_in(
        real_pool, CoverageJob(keras_file(CONV.format(seed=1)), data(3), TORCH, state=state)
    )
    other = CoverageJob(keras_file(CONV.format(seed=2)), data(3), TORCH, state=state)
    with pytest.raises(UsageError, match="was made for another model"):
        coverage_in(real_pool, other)


def explored_with_a_majority(explored: Explored) -> int:
    assert explored.found is not None
    return int((majority(labels_of(explored.found, explored)) >= 0).sum())


@pytest.mark.frameworks
def test_retraining_stands_beside_its_baselines_and_leaves_the_models_alone(
    real_pool: Pool, keras_file: Callable[..., Path]
) -> None:
    models = three_models(keras_file)
    before = [path.read_bytes() for path in models]
    rng = np.random.default_rng(0)
    labelled = {"x": data(40)["x"], "y": rng.integers(0, 5, 40)}
    wish = Retraining(labelled, labelled, epochs=2, most_added=4, learning_rate=0.01)
    job = ExploreJob(models, data(30), TORCH, constraint="none", retraining=wish, baselines=False)
    explored = explore_in(real_pool, job)
    told = explored.retraining
    assert told is not None
    assert told["added"] == 4
    assert told["others"]["finds"] == explored_with_a_majority(explored) - 4 > 0
    kinds = [(row["model"], row["added"]) for row in told["runs"]]
    assert len(set(kinds)) == 9
    for row in told["runs"]:
        assert len(row["accuracy"]) == len(row["others"]["finds"]["accuracy"]) == 2
        assert row["before"] == next(
            r["before"] for r in told["runs"] if r["model"] == row["model"]
        )
    assert any(row["accuracy"][-1] != row["before"] for row in told["runs"])
    again = explore_in(real_pool, job).retraining
    assert again == told  # the first training has not touched the model
    assert [path.read_bytes() for path in models] == before


def bars(rng: np.random.Generator, count: int, across: bool) -> Any:
    """Pictures of a bar somewhere in the middle, across or upright."""
    x = np.zeros((count, 16, 16, 1), np.float32)
    for picture in x:
        place = rng.integers(6, 9)
        picture[place : place + 2, 2:14] = 1
    if not across:
        x = x.transpose(0, 2, 1, 3)
    return np.clip(x + rng.normal(0, 0.05, x.shape), 0, 1).astype(np.float32)


def test_suspects_look_like_the_evidence_and_have_the_false_label() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([bars(rng, 40, True), bars(rng, 50, False)])
    labels = np.repeat([0, 1], [40, 50])
    labels[:12] = 1  # falsified: across, but labelled as upright
    evidence = Evidence(0, 1, bars(rng, 10, True), bars(rng, 10, False), 0.3)
    suspects, scores = find_suspects(x, labels, evidence)
    assert set(suspects.tolist()) == set(range(12))
    assert scores.tolist() == sorted(scores.tolist(), reverse=True)


def test_ssim_is_one_for_the_same_and_falls_with_noise() -> None:
    rng = np.random.default_rng(0)
    a = rng.random((3, 12, 12, 1))
    similar = ssim(a, np.concatenate([a, np.clip(a + rng.normal(0, 0.2, a.shape), 0, 1)]), 1.0)
    assert np.allclose(np.diag(similar[:, :3]), 1)
    assert (np.diag(similar[:, 3:]) < 0.99).all()
    assert (np.diag(similar[:, 3:]) > similar[0, 1]).all()


BARS = """
x = keras.Input((16, 16, 1))
rows = ops.max(ops.mean(x, axis=2), axis=1)
columns = ops.max(ops.mean(x, axis=1), axis=1)
h = layers.Concatenate()([rows, columns])
model = keras.Model(x, layers.Dense(2, activation="softmax", name="last")(h))
model.get_layer("last").set_weights([np.array([[9.0, 0], [0, 9]]), np.array([{bias}, 0.0])])
"""


@pytest.mark.frameworks
def test_pollution_from_models_to_suspects(
    real_pool: Pool, keras_file: Callable[..., Path]
) -> None:
    """The polluted model prefers upright; what was falsified is across but labelled upright."""
    models = tuple(keras_file(BARS.format(bias=b)) for b in (0.0, -4.0))
    rng = np.random.default_rng(0)
    x = np.concatenate([bars(rng, 40, True), bars(rng, 50, False)])
    labels = np.repeat([0, 1], [40, 50])
    labels[:12] = 1
    job = ExploreJob(models, {"x": x, "y": labels}, TORCH, constraint="none", count=60)
    result = pollution_in(real_pool, job)
    assert (result["evidence"]["true"], result["evidence"]["false"]) == (0, 1)
    assert set(result["suspects"]) == set(range(12))
    assert result["verdict"] == "inconsistent"
    assert result["summary"] == "12 of 90 training samples look like 0 and are labelled 1."
    page = rendered("html", result)
    assert page.count("<img") > 12
    assert documented(result) == set()


@pytest.mark.frameworks
def test_pollution_needs_pictures_with_labels(
    real_pool: Pool, keras_file: Callable[..., Path]
) -> None:
    path = keras_file(CONV.format(seed=0))
    with pytest.raises(UsageError, match="needs y"):
        pollution_in(real_pool, ExploreJob((path, path), data(4), TORCH))
    table = ExploreJob((path, path), {"x": np.zeros((3, 4)), "y": np.zeros(3, int)}, TORCH)
    with pytest.raises(UsageError, match="give pictures"):
        pollution_in(real_pool, table)


LOGITS = """
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((6,)), layers.Dense(4, use_bias=False), layers.Softmax()])
for w in model.weights:
    w.assign(np.array(w) * {size})
"""


@pytest.mark.frameworks
def test_between_targets_it_climbs_to_a_planted_fault_that_the_seeds_do_not_show(
    real_pool: Pool, keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    """A softmax that overflows: only large logits show it, and the gradient leads there."""
    path = keras_file(LOGITS.format(size=10))
    targets = [real_pool.targets[name] for name in ("torch", "planted-torch", "openvino")]
    seeds = {"x": np.random.default_rng(0).normal(size=(8, 6)).astype("float32")}
    job = ExploreJob(
        (path,), seeds, TORCH, constraint="none", limits_of_range=(-200.0, 200.0), iterations=12
    )
    with recording("explore", tmp_path, silent, STRICT) as record:
        asked = BetweenTargets(job, tuple(targets), tmp_path)
        result = record.publish(between_in(real_pool, asked, record))
    assert result["gate"]["failing"]
    assert {"junit.xml", "results.sarif"} <= {item.name for item in tmp_path.iterdir()}
    assert result["already_different"] == 0
    assert result["distance"]["before"] < 1e-4
    after = result["distance"]["after"]
    assert after is None or after >= 0.5, "it overflows, or is at least far away"
    assert result["verdict"] == "inconsistent"
    assert any(finding["accused"] == "planted-torch" for finding in result["findings"])
    assert result["differences"]["total"] > 0
    assert (tmp_path / "inputs.npz").exists()
    assert json.loads((tmp_path / "result.json").read_text())["command"] == "explore"
    assert "report.html" in {item.name for item in tmp_path.iterdir()}


def documented(result: Any) -> set[str]:
    """Keys of a result that docs/result-json.md does not name."""
    page = (ROOT / "docs" / "result-json.md").read_text()
    named = set(re.findall(r"`(\w+)`", page)) | set(re.findall(r'"(\w+)"', page))
    free = {"versions", "precision", "per_model"}

    def keys(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, inner in value.items():
                yield key
                if key not in free:
                    yield from keys(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from keys(inner)

    return set(keys(result)) - named


@pytest.mark.frameworks
def test_every_key_is_documented_and_the_pages_show_what_was_found(
    real_pool: Pool, keras_file: Callable[..., Path]
) -> None:
    models = three_models(keras_file)
    labelled = {"x": data(10)["x"], "y": np.arange(10) % 3}
    wish = Retraining(labelled, labelled, epochs=1, most_added=3)
    job = ExploreJob(models, data(30), TORCH, constraint="none", retraining=wish)
    result = explore_result(explore_in(real_pool, job))
    assert result["examples"]
    assert documented(result) == set()
    page = rendered("html", result)
    assert page.count("<article>") == len(result["examples"])
    assert page.count("<polyline") == 2 * (3 + 3)
    assert "<script" not in page
    coverage = coverage_in(real_pool, CoverageJob(models[0], data(5), TORCH, top=3))
    assert documented(coverage) == set()
    assert "neuron coverage" in rendered("html", coverage)


def test_names_from_outside_never_become_markup() -> None:
    from report_explore import EXAMPLE

    page = rendered("html", EXAMPLE)
    assert "<b>evil</b>" not in page
    assert "&lt;b&gt;evil&lt;/b&gt;" in page
