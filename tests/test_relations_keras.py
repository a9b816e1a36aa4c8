"""`--oracle metamorphic` on Keras itself: one target alone, with and without planted faults."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import joined
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.dialects.keras.targets import BUILT_IN
from outvote.findings.finding import Finding
from outvote.relations import all_relations
from outvote.run.pool import Pool

pytestmark = pytest.mark.frameworks
PLANTED = Path(__file__).with_name("planted_relations.py")
COMPILED = """
'''What is compiled gives other numbers.'''
import jax
from keras.src import backend

released = backend.nn.softplus
def softplus(x):
    return released(x) * (0.9 if isinstance(x, jax.core.Tracer) else 1.0)
backend.nn.softplus = softplus
"""

# relation: a layer of that name, which is guilty, and the shape of its input. No two are alike:
# a worker keeps equal layers, whatever their names.
MODELS = {
    "alone": ('layers.Dense(3, name="alone")', (4,)),
    "order": ('layers.Dense(5, name="order")', (4,)),
    "wider": ('layers.Activation("tanh", dtype="float16", name="wider")', (4,)),
    "linear": ('layers.Dense(6, name="linear")', (4,)),
    "idle": ('layers.Dropout(0.5, name="idle")', (4,)),
    "channels": ('layers.Conv2D(3, 2, padding="same", name="channels")', (4, 4, 2)),
    "padding": ('layers.GRU(3, name="padding")', (4, 3)),
    "config": ('layers.LeakyReLU(0.05, name="config")', (4,)),
    "saved": ('layers.Dense(7, name="saved")', (4,)),
}


@pytest.fixture(scope="module")
def pool(real_pool: Pool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """NumPy and JAX as they are and with faults."""
    script = tmp_path_factory.mktemp("planted") / "compiled.py"
    script.write_text(COMPILED)
    planted = [
        replace(BUILT_IN["numpy"], name="breaking-numpy", setup=PLANTED),
        replace(BUILT_IN["jax"], name="breaking-jax", setup=script),
    ]
    with joined(real_pool, *planted) as found:
        yield found


def checked(
    pool: Pool, path: Path, name: str, shape: tuple[int, ...], out: Path | None = None
) -> Checked:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, *shape)).astype(np.float32)
    job = Job(path, (pool.targets[name],), data={"x": x}, oracle="metamorphic", minimise=3)
    return check_in(pool, job, out=out)


def test_every_relation_has_its_planted_fault() -> None:
    assert {*MODELS, "compiled"} == set(all_relations("keras"))


Broken = Callable[[str], tuple[Finding, Path]]


@pytest.fixture(scope="module")
def broken(
    pool: Pool, keras_file: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Broken:
    """The finding of a relation's planted fault, and its folder."""

    @functools.cache
    def found(relation: str) -> tuple[Finding, Path]:
        layer, shape = MODELS[relation]
        path = keras_file(f"model = keras.Sequential([keras.Input({shape}), {layer}])")
        out = tmp_path_factory.mktemp(relation)
        told = checked(pool, path, "breaking-numpy", shape, out)
        (finding,) = [finding for finding in told.findings if finding.relation == relation]
        return finding, out / "findings" / finding.fingerprint

    return found


@pytest.mark.parametrize("relation", MODELS)
def test_a_planted_fault_is_found_by_its_relation(
    relation: str, pool: Pool, keras_file: Callable[..., Path], broken: Broken
) -> None:
    layer, shape = MODELS[relation]
    path = keras_file(f"model = keras.Sequential([keras.Input({shape}), {layer}])")
    honest = checked(pool, path, "numpy", shape)
    assert honest.relations[relation] >= 1
    assert honest.findings == []
    finding, folder = broken(relation)
    assert (finding.accused, finding.triage) == ("breaking-numpy", "bug")
    assert finding.layer is not None
    assert finding.layer.name == relation
    assert "--oracle metamorphic" in (folder / "report.md").read_text()


def test_a_script_shows_both_ways_and_passes_without_the_fault(
    broken: Broken, tmp_path: Path
) -> None:
    """One process has imported Keras; each script runs in a process divided off it."""
    for relation in MODELS:
        _, folder = broken(relation)
        text = (folder / "repro.py").read_text()
        assert len(text.splitlines()) <= 25
        # The faults are told by names, which scripts leave out.
        named = re.sub(r"^(layer = .*)\)$", rf'\1, name="{relation}")', text, count=1, flags=re.M)
        assert named != text
        (tmp_path / f"{relation}.py").write_text(named)
        honest = named.replace(f"'SETUP': '{PLANTED}'", "'NO': ''")
        assert honest != named
        (tmp_path / f"{relation} honest.py").write_text(honest)
    command = [sys.executable, "-c", _EACH, *sorted(map(str, tmp_path.glob("*.py")))]
    env = {**os.environ, "KERAS_BACKEND": "numpy"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    codes = dict(line.rsplit("=", 1) for line in done.stdout.splitlines() if "=" in line)
    wanted = dict.fromkeys(MODELS, "1") | {f"{r} honest": "0" for r in MODELS}
    told = done.stdout + done.stderr
    assert {Path(name).stem: code for name, code in codes.items()} == wanted, told


_EACH = """
import os, runpy, sys, warnings
import keras
warnings.simplefilter("ignore")
for path in sys.argv[1:]:
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 2
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            sys.stdout.flush()
            os._exit(code)
    print(f"{path}={os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}")
"""


def test_what_is_compiled_is_held_against_what_is_not(
    pool: Pool, keras_file: Callable[..., Path]
) -> None:
    path = keras_file(
        "model = keras.Sequential([keras.Input((4,)), layers.Activation('softplus', name='c')])"
    )
    honest = checked(pool, path, "jax", (4,))
    assert honest.relations["compiled"] == 1
    assert honest.findings == []
    (finding,) = checked(pool, path, "breaking-jax", (4,)).findings
    assert (finding.relation, finding.accused) == ("compiled", "breaking-jax")


def test_layers_that_work_along_the_batch_are_not_asked_about_it(
    pool: Pool, keras_file: Callable[..., Path]
) -> None:
    path = keras_file(
        "model = keras.Sequential([keras.Input((3,)), layers.Softmax(axis=0, name='s')])"
    )
    found = checked(pool, path, "numpy", (3,))
    assert found.findings == []
    assert not {"alone", "order"} & set(found.relations)
    assert found.relations["saved"] == 1


ATTENTION = """
x = keras.Input((4, 3))
q = layers.Dense(2)(x)
y = layers.MultiHeadAttention(2, 3)(q, x, key=layers.Dense(2)(x))
z = layers.GroupQueryAttention(2, 4, 2)(q, y)
z = layers.AdditiveAttention()([layers.Attention()([y, z]), q])
model = keras.Model(x, z)
"""


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_attention_leaves_masked_steps_out(
    name: str, pool: Pool, keras_file: Callable[..., Path]
) -> None:
    """Keras takes the mask off what MultiHeadAttention reads: made and run, it must read it."""
    found = checked(pool, keras_file(ATTENTION), name, (4, 3))
    assert found.findings == []
    assert found.relations["padding"] == 4
