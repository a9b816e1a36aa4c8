"""`explore`, `coverage` and `pollution` as a user meets them: errors, exit codes, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.cli import main
from outvote.core.errors import UsageError
from outvote.core.explore_protocol import SeedsSearched
from outvote.core.target import Run
from outvote.dialects.keras.targets import BUILT_IN
from outvote.explore.expedition import Expedition
from outvote.explore.explore import _note, explore_in
from outvote.explore.job import ExploreJob
from outvote.explore.legal import legal_range, read_features, rules_for
from outvote.run.pool import Pool

MODEL = """
keras.utils.set_random_seed({seed})
model = keras.Sequential([keras.Input({shape}), layers.Flatten(),
                          layers.Dense({width}, activation="softmax")])
"""


def model(
    keras_file: Callable[..., Path], seed: int = 0, shape: str = "(6,)", width: int = 3
) -> Path:
    return keras_file(MODEL.format(seed=seed, shape=shape, width=width))


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    path = tmp_path / "seeds.npz"
    np.savez(path, x=np.random.default_rng(0).random((12, 6)).astype("float32"))
    return path


def fails(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one sentence that a wrong call ends with."""
    try:
        code = main(arguments)
    except SystemExit as error:
        code = int(error.code or 0)
    told = capsys.readouterr().err
    assert code == 2, told
    assert told.startswith("outvote: ")
    assert "Traceback" not in told
    return told


@pytest.mark.parametrize("command", ["explore", "coverage", "pollution"])
def test_help_has_examples_and_loads_nothing_heavy(command: str) -> None:
    code = (
        f"from outvote.cli import main\ntry: main(['{command}', '--help'])\nexcept SystemExit: pass"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"outvote {command} " in done.stdout.partition("examples:")[2]
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"numpy", "rich", "jinja2", "keras", "torch", "jax", "tensorflow"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--constraint", "glue"], "is neither one of add-only, blackout"),
        (["--range", "1,0"], "expected LOW,HIGH with LOW < HIGH"),
        (["--rectangle", "big"], "expected HEIGHTxWIDTH"),
        (["--threshold", "2"], "expected a share from 0 to 1"),
        (["--bins", "a,b"], "expected numbers separated by commas"),
        (["--step", "0"], "expected a number above 0"),
        (["--seed", "-1"], "expected a whole number from 0"),
        (["--target", "openvino"], "has no gradients to follow"),
        (["--target", "nothing"], "there is no target 'nothing'"),
        (["--confirm", "openvino"], "cannot confirm finds; choose one of torch, torch:cuda"),
        (["--confirm", "nothing"], "there is no target 'nothing'"),
        (["--target", "jax", "--confirm", "jax"], "is the target that searches; name another"),
        (["--groups", "a"], "add --features FILE.csv"),
        (["--retrain", "train.npz"], "--retrain and --test go together"),
        (["--custom", "none.py"], "given with --custom does not exist"),
    ],
)
def test_a_wrong_option_is_told_in_one_sentence(
    seeds: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    call = ["explore", "a.keras", "b.keras", "--data", str(seeds), "--out", str(tmp_path / "out")]
    assert message in fails([*call, *options], capsys)


def test_one_model_alone_and_missing_files(
    seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--data", str(seeds), "--out", str(tmp_path / "out")]
    assert "Name two or more" in fails(["explore", "a.keras", *out], capsys)
    assert "a.keras does not exist" in fails(["explore", "a.keras", "b.keras", *out], capsys)
    assert "a.keras does not exist" in fails(["coverage", "a.keras", *out], capsys)
    assert "a.keras does not exist" in fails(["pollution", "a.keras", "b.keras", *out], capsys)
    two = ["explore", "a.keras", "b.keras", "--targets", "torch,jax", *out]
    assert "received 2 models" in fails(two, capsys)
    lone = ["explore", "a.keras", "--targets", "torch", *out]
    assert "a comparison needs two targets" in fails(lone, capsys)
    blind = ["explore", "a.keras", "--targets", "openvino,numpy", *out]
    assert "has gradients to follow; add one of torch" in fails(blind, capsys)
    other = ["explore", "a.keras", "--targets", "torch,openvino", "--target", "jax", *out]
    assert "is not among --targets" in fails(other, capsys)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size\n1", "no column `name`"),
        ("name,colour\na,red", "unknown column 'colour'"),
        ("name,unit\na,big", "unit of 'a' is 'big'"),
        ("name,unit\na,0", "unit of 'a' is '0'"),
        ("name,increment\na,maybe", "increment is 'maybe'; write 1 or 0"),
    ],
)
def test_a_bad_features_file_is_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "features.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_features(path)


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("name\na", {}, "describes 1 features, but an input has shape"),
        ("name,low,high\na,2,1\nb,,", {}, "'a' has the range 2 to 1; low must not be above high"),
        ("name,group\na,x\nb,y", {"groups": ("z",)}, "has no group 'z'; it has x, y"),
        ("name\na\nb", {"constraint": "light"}, "cannot keep to --features; use integer"),
    ],
)
def test_features_that_do_not_fit_are_told(
    tmp_path: Path, text: str, more: dict[str, Any], message: str
) -> None:
    path = tmp_path / "features.csv"
    path.write_text(text)
    settings = {"constraint": "integer", "features": path, **more}
    job = ExploreJob((), {}, BUILT_IN["torch"], **settings)
    with pytest.raises(UsageError, match=message):
        rules_for(job, [np.zeros((3, 2))], read_features(path))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.1, 0.9], (0, 1)),
        ([-0.5, 0.9], (-1, 1)),
        ([3.0, 200.0], (0, 255)),
        ([-7.0, 3.0], (-7, 3)),
    ],
)
def test_the_range_is_inferred_from_the_seeds(values: list[float], expected: Any) -> None:
    low, high = legal_range(np.array(values).reshape(2, 1, 1), None)
    assert (low.item(), high.item()) == expected


def test_each_feature_of_a_table_has_its_own_range() -> None:
    low, high = legal_range(np.array([[-5.0, 100.0], [5.0, 900.0]]), None)
    assert (low.tolist(), high.tolist()) == ([-5, 100], [5, 900])
    with pytest.raises(UsageError, match="outside of --range 0,1"):
        legal_range(np.array([[5.0]]), (0.0, 1.0))


@pytest.mark.frameworks
def test_models_that_cannot_be_compared(real_pool: Pool, keras_file: Callable[..., Path]) -> None:
    plain = model(keras_file)

    def told(*paths: Path, **more: Any) -> str:
        job = ExploreJob(paths, {"x": np.zeros((2, 6))}, BUILT_IN["torch"], **more)
        with pytest.raises(UsageError) as error:
            explore_in(real_pool, job)
        return str(error.value)

    assert "the models take different inputs" in told(plain, model(keras_file, shape="(7,)"))
    assert "answer in different forms" in told(plain, model(keras_file, width=4))
    assert "needs pictures" in told(plain, plain, constraint="blackout")
    grey = ExploreJob((plain, plain), {"x": np.full((2, 6), 0.5)}, BUILT_IN["torch"], "add-only")
    with pytest.raises(UsageError, match="there or not"):
        explore_in(real_pool, grey)
    assert "these give classes" in told(plain, plain, tolerance=0.1)
    value = keras_file("model = keras.Sequential([keras.Input((6,)), layers.Dense(1)])")
    assert "--tolerance T" in told(value, value)
    words = keras_file(
        "x = keras.Input((6,), dtype='int32')\n"
        "model = keras.Model(x, layers.Dense(3)(layers.Flatten()(layers.Embedding(5, 2)(x))))"
    )
    assert "takes int32: there is no gradient" in told(words, words)
    assert "no layer whose neurons count" in told(plain, plain, skip=("dense",))


@pytest.mark.frameworks
def test_a_worker_that_dies_keeps_what_was_found(
    real_pool: Pool, keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    """The constraint of this test ends its process after a few moves."""
    script = tmp_path / "mine.py"
    script.write_text(
        "import os\n"
        "import numpy as np\n"
        "moves = []\n"
        "def move(x, gradient, seed, memory, rules):\n"
        "    moves.append(1)\n"
        "    if len(moves) > 6:\n"
        "        os._exit(7)\n"
        "    return x + 0.3 * np.sign(gradient)\n"
    )
    x = np.random.default_rng(0).random((60, 6)).astype("float32")
    pair = tuple(model(keras_file, seed) for seed in (1, 2))
    job = ExploreJob(pair, {"x": x}, BUILT_IN["torch"], str(script), batch_size=4, iterations=40)
    explored = explore_in(real_pool, job)
    assert explored.found is not None
    assert 0 < explored.tried < 60
    assert "ended early" in explored.warnings[0]
    assert "exited with code 7" in explored.warnings[0]


@pytest.mark.frameworks
def test_from_the_command_line_to_the_report(
    keras_file: Callable[..., Path], seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = [str(model(keras_file, seed)) for seed in (1, 2)]
    out = tmp_path / "out"
    call = ["explore", *pair, "--data", str(seeds), "--out", str(out), "--quiet"]
    code = main([*call, "--constraint", "none", "--step", "60"])
    result = json.loads((out / "result.json").read_text())
    assert code == 1
    assert result["verdict"] == "inconsistent"
    assert result["seeds"] == 12
    assert result["differences"]["confirmed_on"] == "jax"
    told = capsys.readouterr().out
    assert "DIFFERENCES FOUND" in told
    assert "seeds per second" in told
    assert "all differences were confirmed on jax" in told
    assert (out / "report.html").exists()
    same = ["explore", pair[0], pair[0], "--data", str(seeds), "--out", str(out), "--quiet"]
    assert main([*same, "--iterations", "2", "--confirm", "none"]) == 0
    assert "NOTHING FOUND" in capsys.readouterr().out
    assert not (out / "inputs.npz").exists()  # of the earlier run


@pytest.mark.frameworks
def test_ctrl_c_keeps_what_was_found(
    keras_file: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Pressed as soon as something was found, in the middle of the search."""

    def noted(trip: Expedition, run: Run[SeedsSearched]) -> None:
        _note(trip, run)
        if trip.explored.found is not None or trip.explored.already:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("outvote.explore.explore._note", noted)
    pair = [str(model(keras_file, seed)) for seed in (1, 2)]
    data = tmp_path / "many.npz"
    np.savez(data, x=np.random.default_rng(0).random((2_000, 6)).astype("float32"))
    out = tmp_path / "out"
    call = ["explore", *pair, "--data", str(data), "--out", str(out), "--constraint", "none"]
    assert main([*call, "--batch-size", "8", "--iterations", "200", "--quiet"]) == 130
    told = capsys.readouterr().out
    assert "STOPPED EARLY" in told
    result = json.loads((out / "result.json").read_text())
    assert result["verdict"] == "interrupted"
    assert 0 < result["seeds"] < 2_000
    assert result["differences"]["total"] + result["already_different"] > 0
