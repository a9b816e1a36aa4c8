"""Keras models as people transform and export them, held against Keras itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import joined
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import check_in
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.pool import Pool
from outvote.targets.choose import known_targets, with_twins

TWINS = {target.twin: target for target in BUILT_IN.values() if target.twin}
ORIGINALS = [BUILT_IN[name] for name in ("jax", "torch", "tensorflow")]
LOSSY = ("fp16", "bf16", "int8")
WRONG = replace(
    TWINS["int8"], name="wrong int8", setup=Path(__file__).with_name("keras_spoiling.py")
)
IMAGES = """
x = keras.Input((8, 8, 2), name="image")
y = layers.BatchNormalization(name="norm")(layers.Conv2D(4, 3, name="conv")(x))
y = layers.ReLU()(y)
y = layers.Flatten()(layers.MaxPooling2D()(y))
model = keras.Model(x, layers.Dense(5, activation="softmax", name="scores")(y))
"""
WORDS = """
ids = keras.Input((6,), dtype="int32", name="ids")
more = keras.Input((3,), name="more")
y = layers.Embedding(11, 4, mask_zero=True, name="words")(ids)
y, *_ = layers.LSTM(5, return_state=True, name="lstm")(y)
model = keras.Model([ids, more], layers.Dense(3, name="dense")(layers.Concatenate()([y, more])))
"""
OVERFLOWING = """
x = keras.Input((4,), name="x")
y = layers.Rescaling(2000.0, name="thousands")(x)
y = layers.Multiply(name="millions")([y, y])
model = keras.Model(x, layers.Rescaling(1e-6, name="back")(y))
"""


@pytest.fixture(scope="module")
def pool(real_pool: Pool) -> Iterator[Pool]:
    with joined(real_pool, *TWINS.values(), WRONG) as running:
        yield running


def checked(pool: Pool, path: Path, *targets: Any, out: Path | None = None) -> Checked:
    return check_in(pool, Job(path, targets, count=4, minimise=0), out=out)


def rows(found: Checked) -> dict[str, dict[str, Any]]:
    return {row["transformation"]: row for row in check_result(found)["twins"]}


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("text", "names"),
    [(IMAGES, tuple(TWINS)), (WORDS, (*LOSSY, "onnx", "saved_model"))],
    ids=["images", "words"],
)
def test_exports_agree_and_narrow_types_are_told_as_that(
    text: str, names: tuple[str, ...], pool: Pool, keras_file: Callable[..., Path]
) -> None:
    found = checked(pool, keras_file(text), *ORIGINALS, *(TWINS[name] for name in names))
    assert not {name: run.message for name, run in found.runs.items() if not run.ok}
    assert found.verdict == "consistent", [f.title for f in found.findings]
    told = {name: row["verdict"] for name, row in rows(found).items()}
    assert told == {name: "precision" if name in LOSSY else "agrees" for name in names}
    for name in LOSSY:
        lost = [layer for layer in rows(found)[name]["layers"] if layer["alone"]]
        assert lost, name
        assert rows(found)[name]["answers"]["instances"] == 4


@pytest.mark.frameworks
def test_a_quantiser_that_is_wrong_is_beyond_what_its_type_explains(
    pool: Pool, keras_file: Callable[..., Path]
) -> None:
    found = checked(pool, keras_file(IMAGES), ORIGINALS[0], TWINS["int8"], WRONG)
    told = {row["target"]: (row["verdict"], row["spoilt"]) for row in check_result(found)["twins"]}
    assert told == {"twin:keras:int8": ("precision", None), "wrong int8": ("spoilt", "scores")}


@pytest.mark.frameworks
def test_what_float16_cannot_hold_is_spoilt_and_its_script_shows_it(
    pool: Pool, keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    found = checked(pool, keras_file(OVERFLOWING), ORIGINALS[0], TWINS["fp16"], out=tmp_path)
    row = rows(found)["fp16"]
    assert (row["verdict"], row["spoilt"]) == ("spoilt", "millions")
    finding = next(f for f in found.findings if f.triage != "precision")
    script = tmp_path / found.repros[finding.fingerprint]
    assert "import outvote" not in script.read_text()
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "they DIFFER" in done.stdout


def test_who_runs_the_original_comes_along() -> None:
    known = {n: t for n, t in known_targets().items() if t.dialect == "keras"}
    found = with_twins([], ["fp16", "litert"], known)
    names = ["jax", "twin:keras:fp16", "tensorflow", "twin:keras:litert"]
    assert [target.name for target in found] == names
