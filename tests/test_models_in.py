"""Every kind of model file is read, and gives on every backend what Keras itself gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from outvote.bench.reader import read_model
from outvote.core.arrays import Array
from outvote.core.case import random_data
from outvote.core.errors import UsageError
from outvote.core.model import Model
from outvote.core.protocol import Ran, RunModel
from outvote.core.target import Run
from outvote.judge.distances import distance_relative
from outvote.run.local import LocalPool
from outvote.run.pool import Pool

pytestmark = pytest.mark.frameworks
Build = Callable[..., Path]

# What Keras itself answers, saved beside the model by the process that built it.
EXPECT = """
rng = np.random.default_rng(0)
def make(t):
    shape = (3, *(n or 16 for n in t.shape[1:]))
    if "float" in t.dtype:
        return rng.normal(size=shape).astype(t.dtype)
    return rng.integers(0, 7, shape).astype(t.dtype)
x = [make(t) for t in model.inputs]
y = keras.tree.flatten(model(x if len(x) > 1 else x[0], training=False))
np.savez(PATH, **{f"x{i}": a for i, a in enumerate(x)},
         **{f"y{i}": np.asarray(ops.convert_to_numpy(a)) for i, a in enumerate(y)})
"""


def expected(folder: Path) -> str:
    return EXPECT.replace("PATH", repr(str(folder / "expected.npz")))


def run_on(pool: Pool, model: Model, inputs: Sequence[Array]) -> dict[str, Run[Ran]]:
    digests = tuple(pool.blobs.put(np.asarray(array)) for array in inputs)
    batch, steps = len(inputs[0]), len(model.layers)
    names = [name for name in pool.targets if not name.startswith("planted")]
    return pool.ask_all(names, RunModel(model=model, inputs=digests, batch=batch, steps=steps))


GRAPHS = {
    "several inputs and outputs": """
a, b = keras.Input((4,)), keras.Input((4,), dtype="int32")
e = layers.Flatten()(layers.Embedding(7, 3)(b))
x = layers.Concatenate()([layers.Dense(5)(a), e])
model = keras.Model([a, b], [layers.Dense(2)(x), layers.Dense(3, activation="softmax")(x)])
""",
    "a shared layer": """
a, b = keras.Input((4,)), keras.Input((4,))
shared = layers.Dense(3, activation="tanh")
model = keras.Model([a, b], layers.Subtract()([shared(a), shared(b)]))
""",
    "nested models, one of them shared": """
inner_in = keras.Input((4,))
inner = keras.Model(inner_in, layers.Dense(4)(layers.LayerNormalization()(inner_in)))
tail = keras.Sequential([layers.Dense(6, activation="gelu"), layers.Dense(2)])
x = keras.Input((4,))
model = keras.Model(x, tail(layers.Add()([inner(x), inner(layers.ReLU()(x))])))
""",
    "keyword tensors": """
q, v = keras.Input((5, 8)), keras.Input((6, 8))
model = keras.Model([q, v], layers.MultiHeadAttention(2, 4)(q, value=v))
""",
    "masks and recurrent layers": """
t = keras.Input((9,), dtype="int32")
x = layers.Embedding(7, 5, mask_zero=True)(t)
x = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x)
x = layers.GRU(3, go_backwards=True)(x)
model = keras.Model(t, x)
""",
    "a masking layer": """
x = keras.Input((6, 3))
model = keras.Model(x, layers.SimpleRNN(4)(layers.Masking(0.0)(x)))
""",
    "free dimensions": """
x = keras.Input((None, None, 3))
model = keras.Model(x, layers.GlobalAveragePooling2D()(layers.Conv2D(4, 3, padding="same")(x)))
""",
    "operators and slices": """
x = keras.Input((6, 4))
y = ops.transpose(x[:, 1:5] * 2.0 + 1.0, (0, 2, 1))
model = keras.Model(x, layers.Dense(2)(ops.reshape(y, (-1, 16))))
""",
    "a layer with two outputs": """
x = keras.Input((5, 3))
seq, state = layers.GRU(4, return_sequences=True, return_state=True)(x)
model = keras.Model(x, [layers.Dense(2)(seq), state])
""",
    "a sequential with wrappers": """
model = keras.Sequential([keras.Input((5, 8, 3)), layers.TimeDistributed(layers.Conv1D(4, 3)),
    layers.TimeDistributed(layers.Flatten()), layers.LSTM(6), layers.Dropout(0.5), layers.Dense(2)])
""",
    "augmentation, and dropout that was traced in training": """
augment = keras.Sequential([layers.RandomFlip(), layers.RandomRotation(0.3)])
x = keras.Input((8, 9, 3))
y = layers.RandomCrop(6, 5)(layers.Dropout(0.5)(augment(x), training=True))
model = keras.Model(x, layers.Flatten()(layers.RandomBrightness(0.4)(y)))
""",
    "layers that only keras.applications has": """
from keras.src.applications.convnext import LayerScale
from keras.src.applications.inception_resnet_v2 import CustomScaleLayer
x = keras.Input((6, 3))
y = LayerScale(0.5, 3)(layers.Dense(3)(x))
model = keras.Model(x, CustomScaleLayer(0.17)([x, y]))
""",
    "adapted normalisation": """
norm = layers.Normalization()
norm.adapt(np.random.default_rng(0).normal(3, 2, size=(50, 6)).astype("float32"))
x = keras.Input((6,))
model = keras.Model(x, layers.Dense(2)(norm(x)))
""",
    "mixed precision": """
x = keras.Input((6,))
y = layers.Dense(8, activation="relu", dtype="mixed_float16")(x)
model = keras.Model(x, layers.Dense(2, dtype="float32")(y))
""",
    "batch normalisation and depthwise convolutions": """
x = keras.Input((8, 8, 3))
y = layers.SeparableConv2D(6, 3, strides=2, padding="same")(x)
y = layers.DepthwiseConv2D(3, depth_multiplier=2)(layers.BatchNormalization()(y))
model = keras.Model(x, layers.GlobalMaxPooling2D()(y))
for v in model.weights:
    v.assign(np.random.default_rng(1).uniform(0.5, 1.5, v.shape).astype("float32"))
""",
}


@pytest.mark.parametrize("what", GRAPHS)
def test_a_graph_computes_what_keras_computes_on_every_backend(
    what: str, real_pool: Pool, keras_file: Build, tmp_path: Path
) -> None:
    path = keras_file(GRAPHS[what], after=expected(tmp_path))
    model, shapes = read_model(real_pool, path, None)
    with np.load(tmp_path / "expected.npz") as file:
        inputs = [file[f"x{i}"] for i in range(len(model.inputs))]
        answers = [file[f"y{i}"] for i in range(len(model.outputs))]
    assert len(shapes) == len(answers)
    for name, run in run_on(real_pool, model, inputs).items():
        assert run.ok, f"{name}: {run.message}\n{run.detail}"
        tolerance = 2e-3 if what == "mixed precision" else 1e-5
        for got, wanted in zip(run.reply.outputs.arrays, answers, strict=True):
            assert (distance_relative(got, wanted) < tolerance).all(), name


def test_a_model_in_float64_stays_in_float64_on_jax(real_pool: Pool, keras_file: Build) -> None:
    """JAX would silently narrow it; and after it, float32 models must be narrow again."""
    snippet = """
x = keras.Input((6,), dtype="DTYPE")
model = keras.Model(x, layers.Dense(3, dtype="DTYPE")(x))
"""
    for dtype in ("float64", "float32"):
        model, _ = read_model(real_pool, keras_file(snippet.replace("DTYPE", dtype)), None)
        runs = run_on(real_pool, model, random_data(model, 3, seed=0).inputs)
        for name in ("tensorflow", "jax", "torch"):
            assert runs[name].reply.outputs.dtypes == (dtype,), name


def test_nested_models_are_laid_open_and_shared_weights_stay_one(
    real_pool: Pool, keras_file: Build
) -> None:
    path = keras_file(GRAPHS["nested models, one of them shared"])
    model, _ = read_model(real_pool, path, None)
    kinds = [layer.kind for layer in model.layers]
    assert "Functional" not in kinds
    assert "Sequential" not in kinds
    assert kinds.count("LayerNormalization") == 2
    assert model.weight_count == 8 + 20 + 30 + 14


LEGACY = """
import h5py, json
with h5py.File({path!r}, "a") as file:
    config = json.loads(file.attrs["model_config"])
    {change}
    file.attrs["model_config"] = json.dumps(config)
"""

SEQUENTIAL = """
model = keras.Sequential([keras.Input((6, 6, 2)), layers.Conv2D(3, 3), layers.DepthwiseConv2D(2),
                          layers.Flatten(), layers.Dense(2)])
"""

TRAPS = {
    "plain": "pass",
    "a Sequential without an InputLayer": (
        "ls = config['config']['layers']; first = ls.pop(0); "
        "ls[0]['config']['batch_input_shape'] = first['config'].get('batch_shape') "
        "or first['config']['batch_input_shape']"
    ),
    "DepthwiseConv2D saved with groups=1": (
        "[l['config'].update(groups=1) for l in config['config']['layers'] "
        "if l['class_name'] == 'DepthwiseConv2D']"
    ),
}


@pytest.mark.parametrize("what", TRAPS)
@pytest.mark.filterwarnings("ignore")
def test_legacy_hdf5_files_load_with_their_weights(
    what: str, real_pool: Pool, keras_file: Build, tmp_path: Path
) -> None:
    import subprocess
    import sys

    path = keras_file(SEQUENTIAL, suffix=".h5", after=expected(tmp_path))
    change = LEGACY.format(path=str(path), change=TRAPS[what])
    subprocess.run([sys.executable, "-c", change], check=True)
    model, _ = read_model(real_pool, path, None)
    assert [layer.kind for layer in model.layers] == [
        "Conv2D",
        "DepthwiseConv2D",
        "Flatten",
        "Dense",
    ]
    with np.load(tmp_path / "expected.npz") as file:
        x, y = file["x0"], file["y0"]
    for name, run in run_on(real_pool, model, [x]).items():
        assert run.ok, f"{name}: {run.message}"
        assert (distance_relative(run.reply.outputs.arrays[0], y) < 1e-5).all(), name


def test_the_legacy_traps_are_real(keras_file: Build) -> None:
    """Keras itself fails on these files; when it no longer does, our mending can go."""
    import subprocess
    import sys

    for what in list(TRAPS)[1:]:
        path = keras_file(SEQUENTIAL, suffix=".h5")
        code = LEGACY.format(path=str(path), change=TRAPS[what])
        code += f"\nimport keras; keras.models.load_model({str(path)!r}, compile=False)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"KERAS_BACKEND": "jax", "PATH": ""},
            capture_output=True,
            check=False,
        )
        assert done.returncode != 0, what


def test_an_architecture_with_weights_loads(
    real_pool: Pool, keras_file: Build, tmp_path: Path
) -> None:
    arch, weights = tmp_path / "arch.json", tmp_path / "arch.weights.h5"
    after = (
        f"open({str(arch)!r}, 'w').write(model.to_json())\n"
        f"model.save_weights({str(weights)!r})\n" + expected(tmp_path)
    )
    keras_file(SEQUENTIAL, after=after)
    model, _ = read_model(real_pool, arch, weights)
    with np.load(tmp_path / "expected.npz") as file:
        x, y = file["x0"], file["y0"]
    runs = run_on(real_pool, model, [x])
    assert (distance_relative(runs["torch"].reply.outputs.arrays[0], y) < 1e-5).all()
    with pytest.raises(UsageError, match="architecture without weights"):
        read_model(real_pool, arch, None)


LAMBDA = "model = keras.Sequential([keras.Input((3,)), layers.Lambda(lambda t: t * 2)])"
CUSTOM = """
@keras.saving.register_keras_serializable("mine")
class Twice(layers.Layer):
    def build(self, shape):
        self.factor = self.add_weight(shape=(shape[-1],), initializer="ones")
    def call(self, x):
        return 2 * x * self.factor
"""
CUSTOM_MODEL = CUSTOM + "model = keras.Sequential([keras.Input((3,)), Twice()])"


def test_code_in_a_file_is_refused_with_the_remedy(real_pool: Pool, keras_file: Build) -> None:
    with pytest.raises(UsageError, match="--allow-code"):
        read_model(real_pool, keras_file(LAMBDA), None)
    with pytest.raises(UsageError, match="--allow-code"):
        read_model(real_pool, keras_file(LAMBDA, suffix=".h5"), None)
    with pytest.raises(UsageError, match=r"--custom FILE\.py"):
        read_model(real_pool, keras_file(CUSTOM_MODEL), None)


def test_a_custom_loss_does_not_stand_in_the_way(real_pool: Pool, keras_file: Build) -> None:
    """What a model was compiled with is not needed to run it."""
    path = keras_file(
        "def mine(y, p):\n    return ops.mean(y - p)\n"
        "model = keras.Sequential([keras.Input((3,)), layers.Dense(2)])\n"
        "model.compile('sgd', mine)"
    )
    model, _ = read_model(real_pool, path, None)
    assert [layer.kind for layer in model.layers] == ["Dense"]


def test_a_configuration_that_names_a_function_of_keras_to_do_harm_is_refused(
    real_pool: Pool, keras_file: Build, tmp_path: Path
) -> None:
    """An activation that is really keras.utils.get_file: downloads are not activations."""
    import json
    import zipfile

    path = keras_file("model = keras.Sequential([keras.Input((3,)), layers.Dense(2)])")
    evil = tmp_path / "evil.keras"
    harm = {
        "module": "keras.utils",
        "class_name": "function",
        "config": "get_file",
        "registered_name": "get_file",
    }
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(evil, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "config.json":
                config = json.loads(data)
                config["config"]["layers"][1]["config"]["activation"] = harm
                data = json.dumps(config).encode()
            target.writestr(name, data)
    with pytest.raises(UsageError, match="'get_file', which is not part of Keras' layers"):
        read_model(real_pool, evil, None)


def test_a_depthwise_trap_in_a_keras_archive_loads_too(
    real_pool: Pool, keras_file: Build, tmp_path: Path
) -> None:
    import json
    import zipfile

    path = keras_file(SEQUENTIAL)
    old = tmp_path / "old.keras"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(old, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "config.json":
                config = json.loads(data)
                config["config"]["layers"][2]["config"]["groups"] = 1
                data = json.dumps(config).encode()
            target.writestr(name, data)
    model, _ = read_model(real_pool, old, None)
    assert model.digests() == read_model(real_pool, path, None)[0].digests()


def test_custom_layers_and_lambdas_run_when_the_user_says_so(
    keras_file: Build, tmp_path: Path
) -> None:
    from outvote.dialects.keras.targets import BUILT_IN

    custom = tmp_path / "mine.py"
    custom.write_text("import keras\nfrom keras import layers\n" + CUSTOM)
    x = np.array([[1, 2, 3]], np.float32)
    with LocalPool([BUILT_IN["jax"]], custom=custom, allow_code=True) as pool:
        pool.start()
        for path in (keras_file(CUSTOM_MODEL), keras_file(LAMBDA)):
            model, _ = read_model(pool, path, None)
            (run,) = run_on(pool, model, [x]).values()
            np.testing.assert_array_equal(run.reply.outputs.arrays[0], x * 2)


def test_random_inputs_respect_the_vocabulary(real_pool: Pool, keras_file: Build) -> None:
    model, _ = read_model(real_pool, keras_file(GRAPHS["masks and recurrent layers"]), None)
    data = random_data(model, 50, seed=0)
    assert data.inputs[0].dtype == np.int32
    assert set(np.unique(data.inputs[0])) == set(range(7))


def test_outputs_are_kept_by_digest_and_only_the_change_is_recomputed(
    real_pool: Pool, keras_file: Build
) -> None:
    """Eager workers re-use layer outputs of an earlier model on the same inputs."""
    from dataclasses import replace

    path = keras_file(
        "model = keras.Sequential([keras.Input((4,)), layers.Dense(5), layers.ReLU(),"
        " layers.Dense(3), layers.Softmax()])"
    )
    model, _ = read_model(real_pool, path, None)
    x = real_pool.blobs.put(np.random.default_rng(0).normal(size=(2, 4)).astype("float32"))

    def hits(changed: Model) -> tuple[int, Array]:
        request = RunModel(model=changed, inputs=(x,), batch=2, keep=True)
        run = real_pool.ask("torch", request)
        assert run.ok, run.detail
        return run.reply.cache_hits, run.reply.outputs.arrays[0]

    start, first = hits(model)
    same, second = hits(model)
    assert same == start + 1  # the whole model is one cached output
    np.testing.assert_array_equal(first, second)
    last = model.layers[2]
    bias = real_pool.blobs.put(np.array([1, 2, 3], np.float32))
    weights = (last.weights[0], replace(last.weights[1], digest=bias))
    mutant = replace(
        model, layers=(*model.layers[:2], replace(last, weights=weights), model.layers[3])
    )
    after, third = hits(mutant)
    assert after == same + 1  # relu's output was found; dense and softmax were computed
    assert not np.array_equal(first, third)
    plain = real_pool.ask("torch", RunModel(model=mutant, inputs=(x,), batch=2))
    np.testing.assert_array_equal(third, plain.reply.outputs.arrays[0])
