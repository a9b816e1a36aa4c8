"""`outvote explore` on real frameworks: what it finds is real, and repeatable on every target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.bench.reader import read_model
from outvote.commands.explore.result import explore_result, save_inputs
from outvote.core.errors import UsageError
from outvote.core.protocol import RunModel
from outvote.core.target import Target
from outvote.dialects.keras.targets import BUILT_IN
from outvote.explore.explore import explore_in
from outvote.explore.job import Explored, ExploreJob
from outvote.run.pool import Pool

pytestmark = pytest.mark.frameworks
GRADIENTS = ("tensorflow", "jax", "torch")

# Untrained models differ almost everywhere; these share most of their weights.
PICTURES = """
keras.utils.set_random_seed(7)
x = keras.Input((8, 8, 1))
h = layers.Conv2D(4, 3, activation="relu", name="{name}_conv")(x)
h = layers.MaxPooling2D(name="{name}_pool")(h)
h = layers.Flatten()(h)
h = layers.Dense(5, name="{name}_logits")(h)
{end}
model = keras.Model(x, h)
rng = np.random.default_rng({number})
for w in model.weights:
    w.assign(np.array(w) * 3 + rng.normal(size=w.shape) * {apart})
"""
TABLE = """
keras.utils.set_random_seed(3)
model = keras.Sequential([keras.Input((6,)), layers.Dense(8, activation="tanh"),
                          layers.Dense(1{end})])
rng = np.random.default_rng({number})
for w in model.weights:
    w.assign(np.array(w) * 2 + rng.normal(size=w.shape) * {apart})
"""
SOFTMAX = 'h = layers.Activation("softmax")(h)'


@pytest.fixture(scope="module")
def trio(keras_file: Callable[..., Path]) -> tuple[Path, ...]:
    """Three classifiers of pictures: softmax and logits ends, other layer names."""
    return tuple(
        keras_file(
            PICTURES.format(name=f"m{n}", end=SOFTMAX if n != 1 else "", number=n, apart=0.4)
        )
        for n in range(3)
    )


@pytest.fixture(scope="module")
def seeds() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"x": rng.random((40, 8, 8, 1)).astype("float32")}


def explore(pool: Pool, models: tuple[Path, ...], data: dict[str, Any], **more: Any) -> Explored:
    target: Target = BUILT_IN[more.pop("target", "torch")]
    return explore_in(pool, ExploreJob(models, data, target, **more))


@pytest.fixture(scope="module")
def explored(real_pool: Pool, trio: tuple[Path, ...], seeds: dict[str, Any]) -> Explored:
    return explore(real_pool, trio, seeds, constraint="none", confirm=BUILT_IN["jax"])


def test_it_finds_inputs_on_which_the_models_differ(explored: Explored) -> None:
    result = explore_result(explored)
    assert result["verdict"] == "inconsistent"
    assert result["seeds"] == 40
    assert result["differences"]["total"] >= 10
    assert set(result["differences"]["per_model"].values()) != {0}
    assert result["differences"]["first_seconds"] > 0
    assert sum(row["count"] for row in result["differences"]["confusion"]) == sum(
        result["differences"]["per_model"].values()
    )


@pytest.mark.parametrize("other", ["jax", "tensorflow", "openvino"])
def test_the_saved_inputs_split_the_models_on_another_target(
    explored: Explored, real_pool: Pool, trio: tuple[Path, ...], tmp_path: Path, other: str
) -> None:
    save_inputs(explored, tmp_path)
    with np.load(tmp_path / "inputs.npz", allow_pickle=False) as saved:
        x = saved["x"]
    labels = []
    for path in trio:
        model, _ = read_model(real_pool, path, None, [BUILT_IN["torch"]])
        request = RunModel(model=model, inputs=(real_pool.blobs.put(x),), batch=len(x))
        run = real_pool.ask(other, request)
        assert run.ok, run.message
        labels.append(run.reply.outputs.arrays[0].argmax(axis=1))
    split = (np.stack(labels) != labels[0]).any(axis=0)
    assert len(split) == explore_result(explored)["differences"]["total"] >= 10
    assert split.all()


AGREEING = """
import keras.src.backend as backend
from keras import ops

def softmax(x, axis=-1):
    return ops.one_hot(ops.zeros(x.shape[:1], "int32"), x.shape[-1])

backend.nn.softmax = softmax
"""


def test_what_another_target_does_not_confirm_is_not_kept(
    real_pool: Pool, trio: tuple[Path, ...], seeds: dict[str, Any], tmp_path: Path
) -> None:
    """On the second target of this test all models give class 0 to everything."""
    script = tmp_path / "agreeing.py"
    script.write_text(AGREEING)
    other = replace(BUILT_IN["jax"], name="planted-agreeing", setup=script)
    real_pool.add(other)
    explored = explore(real_pool, trio, seeds, constraint="none", confirm=other, baselines=False)
    real_pool.stop(other.name)
    result = explore_result(explored)
    dropped = result["differences"]["unconfirmed"]
    assert dropped >= 10
    assert result["differences"]["confirmed_on"] == "planted-agreeing"
    assert result["differences"]["total"] == 0
    assert result["differences"]["first_seconds"] is None
    assert f"because {dropped} inputs split the models on torch only" in result["summary"]
    untouched = explore(real_pool, trio, seeds, constraint="none", iterations=1, baselines=False)
    assert explored.already == untouched.already
    assert explored.coverage < 0.9  # of the seeds that differ from the start alone


def test_a_target_cannot_confirm_itself(
    real_pool: Pool, trio: tuple[Path, ...], seeds: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match="name another, or none"):
        explore(real_pool, trio, seeds, confirm=BUILT_IN["torch"])


@pytest.mark.parametrize("target", GRADIENTS)
@pytest.mark.parametrize("constraint", ["occlusion", "none"])
def test_every_target_finds_the_same(
    real_pool: Pool, trio: tuple[Path, ...], seeds: dict[str, Any], target: str, constraint: str
) -> None:
    few = {"x": seeds["x"][:12]}
    reference = explore(real_pool, trio, few, constraint=constraint, baselines=False)
    found = explore(real_pool, trio, few, constraint=constraint, baselines=False, target=target)
    assert reference.found is not None
    assert found.found is not None
    assert found.found.seed.tolist() == reference.found.seed.tolist()
    assert np.allclose(found.found.inputs[0], reference.found.inputs[0], atol=1e-3)
    assert [len(best) for best in found.best] == [len(best) for best in reference.best]


def test_the_same_seed_gives_the_same_and_the_batch_does_not_matter(
    real_pool: Pool, trio: tuple[Path, ...], seeds: dict[str, Any], explored: Explored
) -> None:
    again = explore(real_pool, trio, seeds, constraint="none", baselines=False)
    assert explored.found is not None
    assert again.found is not None
    assert np.array_equal(again.found.inputs[0], explored.found.inputs[0])
    small = explore(
        real_pool, trio, seeds, constraint="none", baselines=False, batch_size=7, lambda2=0
    )
    large = explore(real_pool, trio, seeds, constraint="none", baselines=False, lambda2=0)
    assert small.found is not None
    assert large.found is not None
    assert small.found.seed.tolist() == large.found.seed.tolist()


def test_coverage_counts_channels_of_layers_and_baselines_stand_beside(explored: Explored) -> None:
    """Convolution, pooling, logits, and the softmax where there is one; not the flattening."""
    assert [len(best) for best in explored.best] == [4 + 4 + 5 + 5, 4 + 4 + 5, 4 + 4 + 5 + 5]
    coverage = explore_result(explored)["coverage"]
    assert coverage["models"][0]["layers"][0]["name"] == "m0_conv"
    assert set(coverage["curves"]) == {"explore", "random", "fgsm"}
    for curve in coverage["curves"].values():
        shares = [share for _, share in curve["thresholds"]]
        assert shares == sorted(shares, reverse=True)
        assert curve["growth"][-1][1] == pytest.approx(shares[0])
    assert coverage["curves"]["explore"]["growth"][-1][1] == pytest.approx(coverage["average"])


def test_layers_can_be_left_out(real_pool: Pool, trio: tuple[Path, ...], seeds: Any) -> None:
    few = {"x": seeds["x"][:3]}
    explored = explore(real_pool, trio, few, skip=("dense", "m0_pool"), baselines=False)
    assert [len(best) for best in explored.best] == [4 + 5, 4 + 4, 4 + 4 + 5]


def test_until_coverage_goes_round_and_stops(
    real_pool: Pool, trio: tuple[Path, ...], seeds: Any
) -> None:
    few = {"x": seeds["x"][:6]}
    enough = explore(real_pool, trio, few, until_coverage=0.1, batch_size=2, baselines=False)
    assert enough.tried < 6
    assert enough.coverage >= 0.1
    never = explore(real_pool, trio, few, until_coverage=1.0, threshold=0.99, baselines=False)
    assert never.coverage < 1
    assert never.cycles >= 1


def test_values_and_bins(real_pool: Pool, keras_file: Callable[..., Path]) -> None:
    pair = tuple(keras_file(TABLE.format(end="", number=n, apart=0.1)) for n in range(2))
    data = {"x": np.random.default_rng(1).normal(size=(30, 6)).astype("float32")}
    found = explore(real_pool, pair, data, constraint="none", tolerance=1.5)
    assert found.kind == "values"
    assert found.found is not None
    a, b = found.found.answers
    assert (np.abs(a - b) > 1.5).all()
    binned = explore(real_pool, pair, data, constraint="none", edges=(-0.5, 0.5), baselines=False)
    assert binned.found is not None
    sides = [np.digitize(answer[:, 0], (-0.5, 0.5)) for answer in binned.found.answers]
    assert (sides[0] != sides[1]).all()


def test_one_sigmoid_is_two_classes(real_pool: Pool, keras_file: Callable[..., Path]) -> None:
    end = ', activation="sigmoid"'
    pair = tuple(keras_file(TABLE.format(end=end, number=n, apart=0.1)) for n in range(2))
    data = {"x": np.random.default_rng(1).normal(size=(20, 6)).astype("float32")}
    found = explore(real_pool, pair, data, constraint="none", step=40, baselines=False)
    assert found.kind == "classes"
    assert found.found is not None
    assert found.found.answers[0].shape[1] == 2


TWO_INPUTS = """
keras.utils.set_random_seed(3)
a, b = keras.Input((4,), name="a"), keras.Input((3, 2), name="b")
h = layers.Concatenate()([layers.Dense(4)(a), layers.Flatten()(b)])
model = keras.Model([a, b], layers.Dense(3, activation="softmax")(h))
rng = np.random.default_rng({number})
for w in model.weights:
    w.assign(np.array(w) * 3 + rng.normal(size=w.shape) * 0.1)
"""


def test_several_inputs(real_pool: Pool, keras_file: Callable[..., Path], tmp_path: Path) -> None:
    pair = tuple(keras_file(TWO_INPUTS.format(number=n)) for n in range(2))
    rng = np.random.default_rng(0)
    data = {"x0": rng.random((20, 4)), "x1": rng.random((20, 3, 2))}
    found = explore(real_pool, pair, data, constraint="none")
    assert found.found is not None
    assert [array.shape[1:] for array in found.found.inputs] == [(4,), (3, 2)]
    save_inputs(found, tmp_path)
    with np.load(tmp_path / "inputs.npz") as saved:
        assert {"x0", "x1", "seed", "label"} <= set(saved.files)


def test_features_move_as_their_file_permits(
    real_pool: Pool, keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    end = ', activation="sigmoid"'
    pair = tuple(keras_file(TABLE.format(end=end, number=n, apart=0.2)) for n in range(2))
    rows = ["name,unit,increment,decrement", "size,0.5,1,0", "font,1,0,1", "author,1,0,0"]
    rows += [f"f{i},1,1,1" for i in range(3)]
    path = tmp_path / "features.csv"
    path.write_text("\n".join(rows))
    data = {"x": np.random.default_rng(1).integers(-4, 5, (60, 6)).astype("float32")}
    found = explore(
        real_pool, pair, data, constraint="integer", features=path, step=0.5, baselines=False
    )
    assert found.found is not None
    moved = found.found.inputs[0] - data["x"][found.found.seed]
    assert (moved[:, 0] >= 0).all()
    assert (moved[:, 1] <= 0).all()
    assert (moved[:, 2] == 0).all()
    assert np.allclose(moved[:, 0] / 0.5, np.rint(moved[:, 0] / 0.5))
    example = explore_result(found)["examples"][0]
    assert {change["feature"] for change in example["changes"]} <= {
        "size", "font", "f0", "f1", "f2",
    }  # fmt: skip


def test_a_constraint_of_ones_own(
    real_pool: Pool, trio: tuple[Path, ...], seeds: Any, tmp_path: Path
) -> None:
    path = tmp_path / "top_row.py"
    path.write_text(
        "import numpy as np\n"
        "def move(x, gradient, seed, memory, rules):\n"
        "    moved = x.copy()\n"
        "    moved[:, 0] += 5 * np.sign(gradient[:, 0])\n"
        "    return moved\n"
    )
    found = explore(real_pool, trio, seeds, constraint=str(path), baselines=False)
    assert found.found is not None
    changed = found.found.inputs[0] - seeds["x"][found.found.seed]
    assert (changed[:, 1:] == 0).all()
    assert found.found.inputs[0].max() <= 1  # clipped, though the file does not


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("nothing = 1", "defines no function `move"),
        ("def move(*a): raise KeyError('lost')", "failed with KeyError: 'lost'"),
        ("def move(x, *a): return x[:1]", "return as many as you are given"),
    ],
)
def test_a_bad_constraint_file_is_told(
    real_pool: Pool, trio: tuple[Path, ...], seeds: Any, tmp_path: Path, code: str, message: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(code)
    with pytest.raises(UsageError, match=message.split("`")[0]):
        explore(real_pool, trio, seeds, constraint=str(path))


FLAT = """
x = keras.Input((6,))
h = ops.sign(x) if {number} else ops.floor(x)
model = keras.Model(x, layers.Dense(3, activation="softmax")(h))
"""


def test_nothing_found_says_why(
    real_pool: Pool, keras_file: Callable[..., Path], trio: tuple[Path, ...], tmp_path: Path
) -> None:
    flat = tuple(keras_file(FLAT.format(number=n)) for n in range(2))
    data = {"x": np.full((4, 6), 0.5, "float32")}
    same = (flat[0], flat[0])
    told = explore_result(explore(real_pool, same, data, constraint="none", lambda2=0))
    assert told["verdict"] == "consistent"
    assert "the gradient is zero on all of them" in told["summary"]
    features = tmp_path / "f.csv"
    features.write_text("name,increment,decrement\n" + "\n".join(f"f{i},0,0" for i in range(6)))
    pair = tuple(
        keras_file(TABLE.format(end=', activation="sigmoid"', number=0, apart=0)) for _ in range(2)
    )
    stuck = explore(real_pool, pair, data, constraint="integer", features=features)
    assert "because the constraint allowed no change" in explore_result(stuck)["summary"]
    alike = explore(real_pool, (trio[0], trio[0]), {"x": np.full((3, 8, 8, 1), 0.5)}, iterations=2)
    assert "within 2 iterations" in explore_result(alike)["summary"]


CUT = """
x = keras.Input((6,))
h = ops.one_hot(ops.argmax(x, axis=1), 6)
model = keras.Model(x, layers.Dense(3, activation="softmax", kernel_initializer="zeros",
    bias_initializer=keras.initializers.Constant([2.0, 0, 0]))(h))
"""


@pytest.mark.parametrize("target", GRADIENTS)
def test_a_layer_that_cuts_the_gradient_is_told(
    real_pool: Pool, keras_file: Callable[..., Path], target: str
) -> None:
    """No gradient at all comes back through an argmax; a library may even refuse to look for it."""
    cut = keras_file(CUT)
    data = {"x": np.random.default_rng(0).random((4, 6)).astype("float32")}
    told = explore_result(explore(real_pool, (cut, cut), data, constraint="none", target=target))
    assert told["verdict"] == "consistent"
    assert "the gradient is zero on all of them: a layer on the way is not" in told["summary"]


def test_one_model_without_a_gradient_does_not_stop_the_others(
    real_pool: Pool, keras_file: Callable[..., Path]
) -> None:
    cut = keras_file(CUT)
    plain = keras_file("""
x = keras.Input((6,))
model = keras.Model(x, layers.Dense(3, activation="softmax", name="last")(x))
model.get_layer("last").set_weights([np.eye(6, 3) * 3 - np.eye(6, 3, k=-1) * 3, np.zeros(3)])
""")
    data = {"x": np.tile([1.0, 0, 0, 0, 0, 0], (12, 1)).astype("float32")}
    found = explore(real_pool, (cut, plain), data, constraint="none", step=40, baselines=False)
    assert found.found is not None
    assert (found.found.answers[1].argmax(axis=1) != 0).all()


@pytest.mark.parametrize(
    ("constraint", "seeds", "code"),
    [
        ("add-only", np.ones((4, 6)), ""),  # everything is there already
        ("mine", np.full((4, 6), 0.5), "def move(x, *rest): return x.copy()"),
    ],
)
def test_a_constraint_that_allows_no_change_is_told(
    real_pool: Pool,
    keras_file: Callable[..., Path],
    tmp_path: Path,
    constraint: str,
    seeds: Any,
    code: str,
) -> None:
    pair = tuple(
        keras_file(TABLE.format(end=', activation="sigmoid"', number=0, apart=0)) for _ in range(2)
    )
    path = tmp_path / "mine.py"
    path.write_text(code)
    chosen = str(path) if code else constraint
    stuck = explore(real_pool, pair, {"x": seeds.astype("float32")}, constraint=chosen)
    told = explore_result(stuck)
    assert told["verdict"] == "consistent"
    assert "because the constraint allowed no change" in told["summary"]


def test_seeds_on_which_nothing_agrees(real_pool: Pool, keras_file: Callable[..., Path]) -> None:
    constant = """
x = keras.Input((6,))
model = keras.Model(x, layers.Dense(3, activation="softmax", kernel_initializer="zeros",
    bias_initializer=keras.initializers.Constant([{bias}]))(x))
"""
    pair = tuple(keras_file(constant.format(bias=b)) for b in ("5.0, 0, 0", "0, 5.0, 0"))
    result = explore_result(explore(real_pool, pair, {"x": np.zeros((4, 6), "float32")}))
    assert result["verdict"] == "inconsistent"
    assert result["already_different"] == 4
    assert (
        result["summary"] == "The models differ on all 4 seeds from the start: none to search from."
    )
