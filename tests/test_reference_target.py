"""The reference as a target: it votes, rounds once, and shows what all libraries get wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import fake
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.commands.fuzz.run import start
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.core.protocol import RunModel
from outvote.core.target import Outcome, Run
from outvote.dialects.keras.targets import BUILT_IN, helpers, reading_order
from outvote.run.local import LocalPool
from outvote.run.pool import Pool

REFERENCE = BUILT_IN["reference"]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with LocalPool([REFERENCE]) as made:
        made.start()
        yield made


def ran(
    pool: Pool, layers: list[tuple[str, dict[str, Any]]], x: Any, jitter: int | None = None
) -> Run:
    names = ["x", *(f"l{n}" for n in range(len(layers)))]
    made = tuple(
        Layer(name, kind, {"name": name, **config}, args=[{REF: [before, 0]}])
        for (kind, config), before, name in zip(layers, names, names[1:], strict=False)
    )
    inputs = (Input("x", (None, *x.shape[1:]), x.dtype.name),)
    model = Model("m", inputs, made, (Ref(names[-1]),), "keras")
    digests = (pool.blobs.put(x),)
    request = RunModel(model=model, inputs=digests, batch=len(x), steps=1, jitter=jitter)
    return pool.ask("reference", request)


RESCALING = ("Rescaling", {"scale": 3.0, "offset": 0.0})


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float32", np.float32(0.3)), ("float16", np.float16(0.3)), ("bfloat16", 0.30078125)],
)
def test_results_are_rounded_once_to_the_type_of_the_layer(
    pool: Pool, dtype: str, expected: Any
) -> None:
    kind, config = RESCALING
    given = np.array([[0.1]], np.float64)
    outputs = ran(pool, [(kind, {**config, "dtype": dtype})], given).reply.outputs
    assert outputs.dtypes == (dtype,)
    assert outputs.arrays[0].tolist() == [[float(expected)]]


def test_what_no_formula_covers_is_a_gap(pool: Pool) -> None:
    x = np.ones((1, 2), np.float32)
    assert ran(pool, [("NoSuchLayer", {})], x).outcome is Outcome.UNSUPPORTED
    assert ran(pool, [("Rescaling", {"scale": 1.0, "offset": 0.0, "new": 7})], x).outcome is (
        Outcome.UNSUPPORTED
    )


def test_a_mask_reaches_the_layer_behind_the_one_that_makes_it(pool: Pool) -> None:
    x = np.array([[[1.0, 2.0], [0.0, 0.0], [5.0, 6.0]]], np.float32)
    masking = ("Masking", {"mask_value": 0.0})
    pooling = ("GlobalAveragePooling1D", {"data_format": "channels_last", "keepdims": False})
    assert ran(pool, [masking, pooling], x).reply.outputs.arrays[0].tolist() == [[3.0, 4.0]]
    assert ran(pool, [pooling], x).reply.outputs.arrays[0].tolist() == [[2.0, np.float32(8 / 3)]]


def test_a_mask_that_goes_on_behind_a_layer_is_a_gap(pool: Pool) -> None:
    """What layers make of the masks that they read is not known here."""
    x = np.array([[[1.0, 2.0], [0.0, 0.0], [5.0, 6.0]]], np.float32)
    pooling = ("GlobalAveragePooling1D", {"data_format": "channels_last", "keepdims": False})
    run = ran(pool, [("Masking", {"mask_value": 0.0}), RESCALING, pooling], x)
    assert run.outcome is Outcome.UNSUPPORTED
    assert ran(pool, [RESCALING, RESCALING, pooling], x).ok


def test_the_noise_floor_moves_by_a_last_place(pool: Pool) -> None:
    x = np.ones((1, 64), np.float32)
    plain = ran(pool, [RESCALING], x).reply.outputs.arrays[0]
    moved = ran(pool, [RESCALING], x, jitter=1).reply.outputs.arrays[0]
    assert 0 < np.abs(moved / plain - 1).max() <= 2.0**-22


def test_it_reads_no_files() -> None:
    order = sorted([REFERENCE, BUILT_IN["torch"], BUILT_IN["openvino"]], key=reading_order)
    assert order[-1] is REFERENCE
    assert helpers([REFERENCE]) == helpers([])


@pytest.mark.slow
def test_a_fault_that_all_libraries_share_is_a_bug_of_all(tmp_path: Path) -> None:
    layers = [{"name": "s", "kind": "Rescaling", "config": {"scale": 2.0}, "inputs": ["x"]}]
    data = {"class_name": "FakeModel", "input": [None, 3], "output": [None, 3], "layers": layers}
    path = tmp_path / "model.json"
    path.write_text(json.dumps(data))
    targets = (fake("a", "lie:Rescaling"), fake("b", "lie:Rescaling"), REFERENCE)
    seeds = (SeedFile("seed", path, None),)
    result = start(FuzzJob(seeds, targets, budget=Budget(mutants=0), inputs=4), tmp_path / "out")
    (finding,) = result["findings"]
    assert (finding["triage"], finding["layer_kind"]) == ("bug", "Rescaling")
    assert finding["targets"] == ["a", "b"]
    assert "Here the majority is wrong" in finding["reason"]
