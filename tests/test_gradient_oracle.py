"""`fuzz --oracle gradients`: what it draws, and what it finds on real frameworks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import fake, joined
from outvote.campaign.investigate import Conclusion
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.oracle import judge
from outvote.campaign.oracles import gradients
from outvote.campaign.report import Report, Standing
from outvote.campaign.runner import ModelRun, Runner
from outvote.campaign.seeds import read_seeds
from outvote.campaign.totals import Totals
from outvote.commands.fuzz.run import start
from outvote.core.blobs import BlobStore
from outvote.core.errors import UsageError
from outvote.core.exercises import PartTold, Pull, Update
from outvote.core.outputs import Outputs
from outvote.core.target import Outcome, Run
from outvote.core.train_protocol import ListStages, StagesListed
from outvote.dialects.keras.stage_cases import VALUES, drawn_stage
from outvote.dialects.keras.stage_script import stage_script
from outvote.dialects.keras.targets import BUILT_IN
from outvote.findings.finding import Finding, Stage
from outvote.run.pool import Pool
from outvote.store import facts
from outvote.store.store import Row, Store

LISTED = StagesListed(
    losses={
        "CategoricalCrossentropy": {"from_logits": False, "label_smoothing": 0.0, "axis": -1},
        "SparseCategoricalCrossentropy": {"from_logits": False},
        "Huber": {"delta": 1.0},
        "Hinge": {},
        "CTC": {},
    },
    truths={
        "CategoricalCrossentropy": "alike",
        "SparseCategoricalCrossentropy": "class",
        "Huber": "alike",
        "Hinge": "alike",
        "CTC": "sequence",
    },
    optimizers={"SGD": {"momentum": 0.0, "clipnorm": None, "clipvalue": None, "use_ema": False}},
    regularizers={"L1": {"l1": 0.01}},
    constraints={"UnitNorm": {"axis": 0}},
)
MODEL = """
x = keras.Input((4,))
model = keras.Model(x, layers.ReLU(name="halved")(layers.Dense(3, name="first")(x)))
"""
# The gradient of relu is halved.
PLANT = """
import keras
from keras import ops
from keras.src import backend

released = backend.nn.relu


def relu(x):
    y = released(x)
    return ops.stop_gradient(y) + 0.5 * (y - ops.stop_gradient(y))


backend.nn.relu = relu
"""


def test_every_stage_is_drawn_with_its_corners_and_a_seed_draws_it_again(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path)
    drawn = [drawn_stage(LISTED, blobs, np.random.default_rng(n)) for n in range(300)]
    again = drawn_stage(LISTED, blobs, np.random.default_rng(7))
    assert again.exercise.request(blobs) == drawn[7].exercise.request(blobs)
    seen = Counter(case.subject for case in drawn)
    assert set(seen) == {"SGD", "L1", "UnitNorm", *LISTED.losses}
    losses = [c.exercise for c in drawn if isinstance(c.exercise, Pull) and c.exercise.loss]
    smoothed = {dict(p.loss or {})["config"].get("label_smoothing") for p in losses}
    assert set(VALUES["label_smoothing"]) <= smoothed
    assert any(not len(pull.inputs[0]) for pull in losses)
    weights = [pull.sample_weight for pull in losses if pull.sample_weight is not None]
    assert any(len(weight) and not weight.any() for weight in weights)
    assert any(np.abs(pull.inputs[0]).max(initial=0) > 89 for pull in losses)  # exp overflows
    updates = [case.exercise for case in drawn if isinstance(case.exercise, Update)]
    rows = [update.rows[0] for update in updates if update.rows[0] is not None]
    assert rows
    assert all(len(set(found.tolist())) < len(found) for found in rows)
    clipped = [set(u.optimizer["config"]) & {"clipnorm", "clipvalue"} for u in updates]
    assert max(map(len, clipped)) == 1


def test_targets_that_give_no_gradients_are_refused(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    targets, seed = (fake("a"), fake("b")), SeedFile("s", fake_model, fake_data)
    job = FuzzJob((seed,), targets, budget=Budget(mutants=1), oracle="gradients")
    with pytest.raises(UsageError, match="needs two targets that give gradients; received none"):
        start(job, tmp_path / "out")


def test_what_could_not_be_compared_is_a_warning_told_once(tmp_path: Path) -> None:
    """Of every mutant it is said, and of those in an earlier sitting."""
    unknown = gradients._unknown(replace(LISTED, truths={"Huber": "alike"}))
    (sentence,) = unknown.left_out
    assert "the losses CTC, CategoricalCrossentropy, Hinge, SparseCategorical" in sentence
    assert gradients._unknown(LISTED) == Conclusion()
    failed: Run[Any] = Run("a", Outcome.ERROR, message="no module named\n'scipy'")
    told = unknown + gradients._left_out("training of Dense layers", "a", failed)
    row = Row(2, 1, 1, "LA", 3, "ok", None, False, 1, 0.0, 0.0)
    with closing(Store(tmp_path, create=True)) as store:
        store.note(facts.LEFT_OUT, [sentence])
        totals = Totals(store)
        for _ in range(2):
            totals.count(Report(row, {}, left_out=told.left_out), 0.0)
        totals.note(Standing())
        assert store.fact(facts.LEFT_OUT) == sorted(told.left_out)
        left = store.fact(facts.LEFT_OUT)
    assert "training of Dense layers are not compared: a says" in left[1]


@pytest.mark.parametrize("told", [("jax", "torch"), ("tensorflow",), ()])
def test_a_target_that_fails_is_in_the_script_where_others_give_an_answer(
    told: tuple[str, ...], tmp_path: Path
) -> None:
    blobs = BlobStore(tmp_path)
    update = Update({"class_name": "SGD"}, (np.ones(2),), ((np.ones(2),),))
    array = Outputs((np.zeros(2),), ("float64",))
    given = {name: PartTold(array, ("weight 0 after step 1",)) for name in told}
    stage = Stage("optimiser", "SGD", update, "weights", given)
    failed = ("tensorflow",)
    finding = Finding("crash", "t", "r", failed, failed[0], "bug", "keras", stage=stage)
    targets = {name: BUILT_IN[name] for name in ("tensorflow", "jax", "torch")}
    text = stage_script(finding, stage, targets, blobs, tmp_path)
    if len(told) < 2:  # nobody gives what would be right
        assert text is None
    else:
        assert text is not None
        assert all(f"'{name}'" in text for name in targets)
        compile(text, "repro.py", "exec")


@pytest.mark.frameworks
def test_a_layer_that_differs_backward_alone_is_found_and_the_others_are_not(
    real_pool: Pool, keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    script = tmp_path / "plant.py"
    script.write_text(PLANT)
    planted = replace(BUILT_IN["jax"], name="halving", setup=script, library="halving")
    data = tmp_path / "data.npz"
    np.savez(data, x=np.random.default_rng(0).normal(size=(4, 4)).astype("float32"))
    with joined(real_pool, planted) as pool:
        targets = tuple(pool.targets[name] for name in ("jax", "torch", "halving"))
        job = FuzzJob((SeedFile("s", keras_file(MODEL), data),), targets, inputs=4)
        runner = Runner(pool, [target.name for target in targets])
        (seed,) = read_seeds(pool, job)
        model = seed.case.model
        oracle = gradients.create(runner, pool.targets)
        (runs,) = runner.run([ModelRun(seed, model, ["first", "halved"], 4)])
        judged = judge(runs, (), seed.case.truth, job.settings)
        told = oracle.look(seed, model, judged)
        listed = pool.ask("jax", ListStages()).reply
    bugs = [f for f in told.findings if f.triage == "bug"]
    assert [(f.accused, f.layer and f.layer.name) for f in bugs] == [("halving", "halved")]
    assert {"Adam", "LossScaleOptimizer", "Muon"} <= set(listed.optimizers)
    assert set(listed.truths) == set(listed.losses)  # a new loss may take another form
    by_class = {kind for kind, form in listed.truths.items() if form == "class"}
    generalised = "CategoricalGeneralizedCrossEntropy"
    assert by_class == {"SparseCategoricalCrossentropy", "Circle", generalised}
    assert [kind for kind, form in listed.truths.items() if form == "sequence"] == ["CTC"]
    assert set(listed.regularizers) == {"L1", "L1L2", "L2", "OrthogonalRegularizer"}
    assert set(listed.constraints) == {"MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm"}
