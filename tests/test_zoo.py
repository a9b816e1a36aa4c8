"""The zoo: its table is true, its models build, train, and answer what they are asked."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from outvote.bench.reader import read_model
from outvote.cli import main
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.core.arrays import Array
from outvote.core.case import load_data
from outvote.core.dialect import zoo_of
from outvote.core.errors import UsageError
from outvote.core.zoo_protocol import BuildZooModel
from outvote.dialects.keras.targets import BUILT_IN
from outvote.dialects.keras.zoo.catalog import ENTRIES, GROUPS, VERSION, ZooEntry, find_entries
from outvote.dialects.keras.zoo.samples import digits, fitted, generated
from outvote.dialects.keras.zoo.seeds import default_cache, seed_file
from outvote.dialects.keras.zoo.work import Trained, _plan, bench, build, source_of, train, trainer
from outvote.dialects.torch_export.zoo.catalog import PROGRAMS
from outvote.judge.distances import spread
from outvote.run.pool import Pool

ROOT = Path(__file__).parent.parent
SMALL = [entry.name for entry in ENTRIES.values() if entry.weights < 500_000]


def small_npz(path: Path, x: Array, y: Array) -> str:
    np.savez(path, x=x, y=y)
    return str(path)


# The table


def test_the_groups_are_those_of_the_papers() -> None:
    assert {name: len(members) for name, members in GROUPS.items()} == {
        "all": 25,
        "lemon": 12,
        "audee": 7,
        "tiny": 5,
    }
    assert [entry.name for entry in find_entries(["lenet5", "audee", "gru-imdb"])] == [
        "lenet5",
        *(name for name in GROUPS["audee"] if name != "lenet5"),
    ]


@pytest.mark.slow
def test_the_list_loads_no_framework() -> None:
    code = (
        "import sys\nfrom outvote.cli import main\n"
        "assert main(['zoo', 'list']) == 0\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *table, modules = done.stdout.splitlines()
    assert not {"numpy", "keras", "tensorflow", "jax", "torch", "sklearn"} & set(modules.split())
    for name in ENTRIES:
        assert any(name in line.split() for line in table), f"{name} is not listed"


def test_programs_of_pytorch_are_named_in_the_guide_and_a_near_name_is_hinted() -> None:
    page = (ROOT / "docs" / "zoo.md").read_text()
    assert [name for name in PROGRAMS if f"`{name}`" not in page] == []
    assert zoo_of("torch:all").members_of("torch:all") == tuple(PROGRAMS)
    with pytest.raises(UsageError, match="did you mean 'torch:resnet'"):
        zoo_of("torch:resnt").members_of("torch:resnt")
    with pytest.raises(UsageError, match="has one size"):
        PROGRAMS["torch:vit"].sized(16)


def test_the_guide_has_the_figures_of_the_table() -> None:
    page = (ROOT / "docs" / "zoo.md").read_text()
    rows = {row[0]: row[1:] for row in re.findall(r"^\| `([\w-]+)` \|" + r" (.*?) \|" * 5, page,
                                                  flags=re.MULTILINE)}  # fmt: skip
    for entry in ENTRIES.values():
        assert rows[entry.name] == (
            ", ".join(entry.papers) or "ours",
            "x".join(map(str, entry.shape)),
            str(entry.layers),
            f"{entry.weights:,}",
            entry.data,
        )
        assert entry.samples == (400 if entry.weights > 2_000_000 else 10_000)


# Samples


@pytest.mark.parametrize("name", ["lenet5", "lstm-sine", "lstm-stock", "lstm-imdb", "tiny-volume"])
def test_generated_samples_fit_their_model_and_repeat(name: str) -> None:
    entry = ENTRIES[name]
    x, y = generated(entry, 50, 3)
    again, _ = generated(entry, 50, 3)
    other, _ = generated(entry, 50, 4)
    assert x.shape == (50, *entry.shape)
    assert (x == again).all()
    assert not (x == other).all()
    assert len(np.unique(y)) >= entry.outputs
    if entry.vocabulary:
        assert (x.min() >= 0, x.max() < entry.vocabulary) == (True, True)


def test_images_are_resized_linearly_and_scaled() -> None:
    ramp = np.tile(np.arange(8, dtype=np.uint8) * 16, (12, 8, 1))
    entry, (x, y) = fitted(ENTRIES["resnet20"], {"x": ramp, "y": np.arange(12) % 3}, "it")
    assert x.shape == (12, 32, 32, 3)
    assert x.dtype == np.float32
    assert (entry.outputs, y.dtype.kind) == (3, "i")
    np.testing.assert_allclose(x[0, :, 4, 0], 16 / 255 * ((4 + 0.5) / 4 - 0.5), rtol=1e-5)
    assert (np.diff(x[5, 7, :, 2]) >= 0).all()
    colours = np.stack([np.full((12, 8, 8), level) for level in (0.0, 0.3, 0.6)], axis=-1)
    _, (x, _) = fitted(ENTRIES["lenet5"], {"x": colours, "y": np.arange(12) % 3}, "it")
    np.testing.assert_allclose(x, np.full((12, 28, 28, 1), 0.3), rtol=1e-5)


@pytest.mark.slow
def test_digits_keep_their_pictures_when_resized() -> None:
    entry, (x, y) = fitted(ENTRIES["lenet5"], digits(), "digits")
    assert (x.shape, entry.outputs) == ((1797, 28, 28, 1), 10)
    assert 0 <= x.min() < x.max() <= 1
    means = np.stack([x[y == digit].mean(axis=0) for digit in range(10)])
    nearest = ((x[:200, None] - means) ** 2).sum(axis=(2, 3, 4)).argmin(axis=1)
    assert (nearest == y[:200]).mean() > 0.85


TEN = np.arange(10) % 2


@pytest.mark.parametrize(
    ("name", "x", "y", "said"),
    [
        ("lenet5", np.ones((10, 784)), TEN, "lenet5 takes images"),
        ("lenet5", np.ones((10, 8, 8, 2)), TEN, "x of it has shape (10, 8, 8, 2)"),
        ("lenet5", np.ones((10, 8, 8)), TEN + 0.5, "must be one class from 0"),
        ("lenet5", np.ones((10, 8, 8)), TEN - 1, "smallest -1"),
        ("lenet5", np.ones((10, 8, 8)), np.ones((10, 3)), "received shape (10, 3)"),
        ("lenet5", np.full((10, 8, 8), np.nan), TEN, "x of it must hold finite numbers"),
        ("lenet5", np.full((10, 8, 8), "a"), TEN, "x of it must hold finite numbers"),
        ("lenet5", np.ones((9, 8, 8)), TEN[:9], "10 samples or more"),
        ("lenet5", np.ones((11, 8, 8)), TEN, "as many in x as in y"),
        ("lenet5", np.ones((10, 0, 8)), TEN, "x has shape (10, 0, 8)"),
        ("lenet5", np.ones((10, 8, 8)), TEN * 10**9, "y of it asks for 1000000001 classes"),
        ("gru-imdb", np.full((10, 5), 10**12), TEN, "x of it asks for 1000000000001 tokens"),
        ("gru-imdb", np.ones((10, 5)) / 2, TEN, "whole numbers from 0"),
        ("gru-imdb", np.ones((10, 5, 2), int), TEN, "tokens (count, length)"),
        ("lstm-sine", np.ones((10, 5, 2, 2)), TEN, "sequences (count, length, features)"),
    ],
)
def test_samples_that_do_not_fit_are_refused(name: str, x: Array, y: Array, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        fitted(ENTRIES[name], {"x": x, "y": y}, "it")


# What a user gets wrong


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["build", "lenet"], "there is no model 'lenet' in the zoo; did you mean 'lenet5'?"),
        (["build", "zzz"], "`outvote zoo list` lists them"),
        (["build", "xception", "--size", "32"], "xception needs --size 71 or more; received 32"),
        (["build", "lenet5", "--size", "x"], "expected a whole number from 1, received 'x'"),
        (["build", "lenet5", "--seed", "-1"], "expected a whole number from 0 to 4294967295"),
        (["train", "lenet5", "--target", "numpy"], "choose from tensorflow, jax, torch"),
        (["train", "lenet5", "--data", "no.npz"], "the data file no.npz does not exist"),
        (["train", "lenet5", "--data", "keras:mnits"], "--data keras:mnits is unknown"),
        (["build", "lenet5", "--out", "file"], "file is a file; name a folder with --out DIR"),
        (["build", "lenet5", "--out", "file/sub"], "is a file; name a folder with --out DIR"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """None of them costs the start of a framework."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Pool, "start", lambda *a: pytest.fail("a worker was started"))
    Path("file").touch()
    try:
        code = main(["zoo", *arguments])
    except SystemExit as stop:
        code = int(stop.code or 0)
    assert code == 2
    errors = capsys.readouterr().err.splitlines()
    assert said in errors[-1]
    assert errors[-1].startswith("outvote: ")
    assert not list(tmp_path.glob("**/.unfinished*"))


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"needs scikit-learn.*outvote\[zoo\].*--data FILE.npz"):
        digits()
    with pytest.raises(UsageError, match="needs one of tensorflow, jax, torch"):
        trainer(None)
    with pytest.raises(UsageError, match="target 'jax' needs keras and jax"):
        trainer("jax")


def test_the_first_installed_backend_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "tensorflow" else object()
    )
    assert trainer(None).name == "jax"


# Models that are built


@pytest.fixture
def built(real_pool: Pool, tmp_path: Path) -> Callable[..., tuple[Path, Path, ZooEntry]]:
    def make(name: str, target: str = "tensorflow", seed: int = 0) -> tuple[Path, Path, ZooEntry]:
        with bench(tmp_path / target, BUILT_IN[target], pool=real_pool) as ready:
            made = build(ready, ENTRIES[name], seed)
        assert (made.layers, made.weights) == (ENTRIES[name].layers, ENTRIES[name].weights)
        assert sorted(p.name for p in made.model.parent.iterdir()) == [
            f"{name}.keras",
            f"{name}.npz",
        ]
        return made.model, made.data, ENTRIES[name]

    return make


@pytest.mark.frameworks
@pytest.mark.parametrize("name", SMALL)
def test_a_small_model_has_the_listed_size_and_two_backends_agree_on_real_answers(
    name: str, built: Callable[..., tuple[Path, Path, ZooEntry]], real_pool: Pool
) -> None:
    model, data, entry = built(name)
    targets = (BUILT_IN["tensorflow"], BUILT_IN["torch"])
    checked = check_in(real_pool, Job(model, targets, data=data))
    assert checked.verdict == "consistent", [f.title for f in checked.findings]
    assert not checked.warnings
    answers = checked.outputs["torch"].arrays[0]
    assert len(answers) == 32
    assert spread(answers) > 0.2
    if entry.is_classifier:
        assert len(set(answers.argmax(axis=1))) >= min(4, entry.outputs)


@pytest.mark.frameworks
def test_a_model_of_keras_applications_answers_too(
    built: Callable[..., tuple[Path, Path, ZooEntry]], real_pool: Pool
) -> None:
    model, data, _ = built("mobilenetv2-cifar")
    targets = (BUILT_IN["tensorflow"], BUILT_IN["torch"])
    checked = check_in(real_pool, Job(model, targets, data=data, count=8))
    assert checked.verdict == "consistent", [f.title for f in checked.findings]
    assert len(set(checked.outputs["torch"].arrays[0].argmax(axis=1))) >= 3


@pytest.mark.frameworks
def test_a_seed_gives_the_same_model_on_every_backend(
    built: Callable[..., tuple[Path, Path, ZooEntry]], real_pool: Pool
) -> None:
    """All but the last layer, which is scaled by what a backend computed, to the last bit."""

    def digests(target: str, seed: int) -> tuple[list[str], set[str]]:
        model, _ = read_model(real_pool, built("residual-mlp", target, seed)[0], None)
        layers = {layer.name: layer for layer in model.layers}
        return list(layers), {
            weight.digest for name in layers if name != "answer" for weight in layers[name].weights
        }

    first = digests("tensorflow", 0)
    assert len(first[1]) > 10
    assert digests("torch", 0) == first
    assert not digests("torch", 1)[1] & first[1]


@pytest.mark.frameworks
def test_a_model_that_ignores_its_input_is_not_written(real_pool: Pool) -> None:
    x = np.ones((64, 28, 28, 1), np.float32)
    plan = _plan(ENTRIES["lenet5"])
    request = BuildZooModel(plan=plan, x=real_pool.blobs.put(x), seed=0)
    run = real_pool.ask("torch", request)
    assert not run.ok
    assert run.message.startswith("the features of lenet5 hardly depend on the input")


@pytest.mark.frameworks
def test_a_seed_file_is_built_once(
    real_pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = seed_file("residual-mlp", pool=real_pool)
    (folder,) = default_cache().iterdir()
    assert default_cache() == tmp_path / "outvote" / "zoo"
    assert folder.name.startswith(f"{VERSION}-keras-3.")
    assert sorted(folder.iterdir()) == sorted(first)
    before = [path.stat().st_mtime_ns for path in first]
    assert seed_file("residual-mlp", pool=real_pool) == first
    assert [path.stat().st_mtime_ns for path in first] == before
    assert seed_file("residual-mlp", tmp_path / "elsewhere", real_pool)[0].exists()
    with pytest.raises(UsageError, match="no model 'x'"):
        seed_file("x", pool=real_pool)


# Models that are trained


@pytest.fixture
def trained(real_pool: Pool, tmp_path: Path) -> Callable[..., Trained]:
    def make(name: str, target: str, data: str | None = None, epochs: int = 1) -> Trained:
        entry = ENTRIES[name]
        with bench(tmp_path, BUILT_IN[target], pool=real_pool) as ready:
            return train(ready, entry, source_of(data, [entry]), epochs)

    return make


@pytest.mark.frameworks
def test_lenet_learns_digits_and_keeps_it_on_another_backend(
    trained: Callable[..., Trained], real_pool: Pool
) -> None:
    done = trained("lenet5", "tensorflow", epochs=3)
    assert done.guess < 0.2
    assert done.score > 0.8
    assert (done.trained_on, done.tested_on) == (1438, 359)
    targets = (BUILT_IN["tensorflow"], BUILT_IN["torch"])
    checked = check_in(real_pool, Job(done.made.model, targets, data=done.made.data))
    assert checked.verdict == "consistent"
    labels = load_data(done.made.data)["y"]
    answers = checked.outputs["torch"].arrays[0].argmax(axis=1)
    assert (answers == labels).mean() == pytest.approx(done.score, abs=0.01)


@pytest.mark.frameworks
@pytest.mark.parametrize("target", ["torch", "jax"])
def test_a_regression_beats_one_answer_to_all(target: str, trained: Callable[..., Trained]) -> None:
    done = trained("lstm-stock", target, epochs=2)
    assert not done.is_classifier
    assert done.score < done.guess / 2


@pytest.mark.frameworks
def test_a_model_is_made_for_the_tokens_and_sequences_of_a_file(
    trained: Callable[..., Trained], real_pool: Pool, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    tokens = small_npz(tmp_path / "t.npz", rng.integers(0, 77, (40, 9)), np.arange(40) % 3)
    done = trained("simple-rnn-imdb", "torch", tokens)
    model, shapes = read_model(real_pool, done.made.model, None)
    assert (model.inputs[0].shape, shapes) == ((None, 9), [[None, 3]])
    assert model.layers[0].config["input_dim"] == 77
    series = small_npz(tmp_path / "s.npz", rng.normal(size=(40, 6, 2)), rng.normal(size=(40, 4)))
    model, shapes = read_model(real_pool, trained("lstm-stock", "torch", series).made.model, None)
    assert (model.inputs[0].shape, shapes) == ((None, 6, 2), [[None, 4]])


@pytest.mark.frameworks
def test_numbers_that_make_training_diverge_are_said(
    trained: Callable[..., Trained], tmp_path: Path
) -> None:
    huge = small_npz(tmp_path / "h.npz", np.full((40, 6, 1), 1.0), np.full(40, 1e38))
    with pytest.raises(UsageError, match="training diverged: the loss is"):
        trained("lstm-stock", "torch", huge)


# The network is out of reach for this worker, and one dataset is at hand.
OFFLINE = """
import keras, numpy as np
def load_data():
    x, y = np.arange(30 * 64, dtype="uint8").reshape(30, 8, 8), np.arange(30) % 3
    return (x[:20], y[:20]), (x[20:], y[20:, None][:, 0])
keras.datasets.fashion_mnist.load_data = load_data
"""


@pytest.mark.frameworks
def test_keras_datasets_are_loaded_or_the_failure_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "offline.py").write_text(OFFLINE)
    env = dict.fromkeys(("https_proxy", "http_proxy"), "http://127.0.0.1:9")
    env |= {"KERAS_HOME": str(tmp_path / "keras"), "no_proxy": ""}
    target = replace(BUILT_IN["torch"], env=env, setup=tmp_path / "offline.py")
    with bench(tmp_path / "out", target) as ready:
        lenet = ENTRIES["lenet5"]
        done = train(ready, lenet, source_of("keras:fashion_mnist", []), 1, 25)
        assert (done.trained_on, done.tested_on) == (20, 5)
        for name in ("mnist", "imdb"):
            with pytest.raises(UsageError) as said:
                train(ready, lenet, source_of(f"keras:{name}", []), 1, 25)
            assert str(said.value).startswith(f"keras.datasets.{name} could not be loaded (")
            assert "without a network, give a file with --data FILE.npz" in str(said.value)


# The command


@pytest.mark.frameworks
def test_the_command_writes_and_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "outvote", "zoo"]
    more = ["--target", "jax", "--out", str(tmp_path / "zoo")]
    done = subprocess.run(
        [*command, "build", "residual-mlp", *more], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("residual-mlp: 19 layers, 20,842 weights")
    assert f"outvote check {tmp_path}/zoo/residual-mlp.keras --data" in done.stdout
    driver = subprocess.Popen(
        [*command, "train", "lenet5", "--epochs", "1000", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert driver.stderr is not None
    for line in driver.stderr:
        if line.startswith("Training lenet5"):
            break
    driver.send_signal(signal.SIGINT)
    out, err = driver.communicate(timeout=20)
    assert driver.returncode == 130, err
    assert "stopped; 0 of 1 models are finished and kept" in out
    assert "Traceback" not in err
    left = sorted(path.name for path in (tmp_path / "zoo").iterdir())
    assert left == ["residual-mlp.keras", "residual-mlp.npz"]


@pytest.mark.frameworks
@pytest.mark.parametrize("inputs", ["2", "0"])
def test_layers_are_tried_alone_where_no_seed_is_named_and_on_branches_for_no_instances(
    inputs: str, tmp_path: Path
) -> None:
    command = "fuzz --strategy layers --targets numpy,torch --budget 5 --minimise 0 --confirm 0"
    out = tmp_path / "campaign"
    options = ["--inputs", inputs, "--quiet", "--out", str(out)]
    code = main([*command.split(), *options])
    result = json.loads((out / "result.json").read_text())
    assert code == bool(result["gate"]["failing"])
    alone = inputs == "2"
    seeds = ["tiny-number"] if alone else list(GROUPS["tiny"])
    assert [seed["name"] for seed in result["seeds"]] == seeds
    assert {row["rule"] for row in result["rules"]} >= {"FL"}
    assert ("BR" in {row["rule"] for row in result["rules"]}) is not alone
    assert result["tested"] == 5
