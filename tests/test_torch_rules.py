"""The mutation rules on PyTorch programs: mutants run, fit, can be made again and saved."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from conftest import in_pool
from outvote.bench.reader import read_file
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.commands.fuzz.run import start
from outvote.core.case import load_data, random_data
from outvote.core.model import Input, Layer, Model, Ref
from outvote.core.protocol import Ran, Read, RunModel, Save
from outvote.core.target import Run
from outvote.dialects.torch_export.nouns.node import ref
from outvote.dialects.torch_export.nouns.requests import TryCalls
from outvote.dialects.torch_export.targets import BUILT_IN
from outvote.dialects.torch_export.zoo import workshop
from outvote.dialects.torch_export.zoo.catalog import PROGRAMS
from outvote.dialects.torch_export.zoo.work import build
from outvote.mutate.registry import all_rules, mutate
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools, tools_for
from outvote.run.pool import Pool
from outvote.run.watch import silent
from test_ground_truth import WORD, told
from torch_programs import saved

pytestmark = pytest.mark.frameworks
RULES = all_rules("torch_export")
TARGETS = ("torch:eager", "torch:decomposed")
SEEDS = 6


class Images(nn.Module):
    """Convolutions, a normalisation, activations that write over what others read, a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.over = nn.ReLU(inplace=True)
        self.head = nn.Linear(6 * 4, 5)

    def forward(self, x: Any) -> Any:
        h = self.norm(self.first(x))
        h = torch.tanh(self.second(self.over(h))) + h
        h = nn.functional.max_pool2d(nn.functional.silu(h), 2)
        return torch.softmax(self.head(torch.flatten(h, 1)), -1)


class Sequences(nn.Module):
    """Two layers alike, one behind the other."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return torch.sigmoid(self.two(torch.relu(self.one(x))))


MODELS: Mapping[str, tuple[type[nn.Module], tuple[int, ...]]] = {
    "images": (Images, (2, 3, 4, 4)),
    "sequences": (Sequences, (2, 3, 4)),
}


@dataclass(frozen=True)
class Bench:
    pool: Pool
    tools: Tools
    files: Mapping[str, Path]
    subjects: Mapping[str, Subject]

    def runs(self, subject: Subject) -> dict[str, Run[Ran]]:
        data = random_data(subject.model, 3, 0)
        digests = tuple(self.pool.blobs.put(array) for array in data.inputs)
        return self.pool.ask_all(
            TARGETS, RunModel(model=subject.model, inputs=digests, batch=data.count)
        )


@pytest.fixture(scope="module")
def bench(program_pool: Pool, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("models")
    files, subjects = {}, {}
    for name, (made, shape) in MODELS.items():
        torch.manual_seed(1)
        free = ({0: torch.export.Dim("n")},)
        files[name] = saved(made(), (torch.randn(shape),), folder / f"{name}.pt2", free)
        run = read_file(program_pool, TARGETS[0], files[name])
        assert run.ok, run.message
        subjects[name] = Subject.of(run.reply.model, run.reply.specs)
    return Bench(program_pool, tools_for("torch_export", program_pool, TARGETS[0]), files, subjects)


def mutants(bench: Bench, rule: str, model: str) -> list[Subject]:
    parent = bench.subjects[model]
    found = (mutate(RULES[rule], parent, bench.tools, (seed,)) for seed in range(SEEDS))
    return [mutant for mutant in found if mutant is not None]


@pytest.mark.parametrize("rule", RULES)
def test_mutants_run_alike_and_are_valid_files(rule: str, bench: Bench) -> None:
    found = {model: mutants(bench, rule, model) for model in MODELS}
    assert any(found.values()), f"{rule} applies to none of the models"
    for model, made in found.items():
        again = [json.dumps(one.model.to_json()) for one in mutants(bench, rule, model)]
        assert [json.dumps(one.model.to_json()) for one in made] == again
        for mutant in made:
            assert mutant.model != bench.subjects[model].model
            eager, decomposed = bench.runs(mutant).values()
            assert eager.ok, eager.message
            assert decomposed.ok, decomposed.message
            x, y = (run.reply.outputs.arrays[0] for run in (eager, decomposed))
            assert x.shape == (3, *mutant.specs[_last(mutant)][0].shape[1:])
            assert np.allclose(x, y, rtol=1e-4, atol=1e-5, equal_nan=True)
        if made:
            _require_valid(bench, made[0])


def _last(subject: Subject) -> str:
    return subject.model.outputs[0].producer


def _require_valid(bench: Bench, mutant: Subject) -> None:
    """Saved and read again, a mutant gives what it gave."""
    kept = bench.pool.ask(TARGETS[0], Save(model=mutant.model))
    assert kept.ok, kept.message
    again = bench.pool.ask(TARGETS[0], Read(file=kept.reply.file))
    assert again.ok, again.message
    both = [bench.runs(one) for one in (mutant, Subject.of(again.reply.model, again.reply.specs))]
    first, second = (runs[TARGETS[0]].reply.outputs.arrays[0] for runs in both)
    assert np.array_equal(first, second, equal_nan=True)


def test_a_call_that_writes_over_what_others_read_changes_nothing_for_them(bench: Bench) -> None:
    """Without the call behind which it stands, `relu_` reads what the sum reads too."""
    images = bench.subjects["images"]
    norm = next(x for x in images.model.layers if x.kind == "aten.batch_norm")
    eager, decomposed = bench.runs(images.without(norm)).values()
    x, y = (run.reply.outputs.arrays[0] for run in (eager, decomposed))
    assert np.allclose(x, y, rtol=1e-4, atol=1e-6)


def test_a_program_of_the_zoo_is_what_its_table_says(program_pool: Pool, tmp_path: Path) -> None:
    """One of them, drawn by the commit; it is read, and it runs."""
    name = random.Random(WORD).choice(sorted(PROGRAMS))
    worker = program_pool.targets[TARGETS[0]]
    with workshop().bench(tmp_path, worker, silent, program_pool) as at_work:
        made = build(at_work, PROGRAMS[name], 0)
    assert (made.layers, made.weights) == (PROGRAMS[name].layers, PROGRAMS[name].weights)
    targets = tuple(BUILT_IN[target] for target in TARGETS)
    found = check_in(program_pool, Job(made.model, targets, data=load_data(made.data)))
    assert found.verdict == "consistent", told(WORD, [name, *(f.title for f in found.findings)])
    shape = found.case.data.inputs[0].shape[1:]
    assert shape == PROGRAMS[name].shape


def call(operator: str, **config: Any) -> TryCalls:
    """One call on a tensor with a free batch."""
    layer = Layer("y", f"aten.{operator}", config, [], {"self": ref("x")})
    inputs = (Input("x", (None, 3, 4), "float32"),)
    return TryCalls(model=Model("call", inputs, (layer,), (Ref("y"),), "torch_export"))


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (call("softmax.int", dim=1), ((None, 3, 4), "float32")),
        (call("sum.dim_IntList", dim=[2]), ((None, 3), "float32")),
        (call("zeros_like"), ((None, 3, 4), "float32")),
        (call("softmax.int", dim=0), "mixes instances"),
        (call("cumsum", dim=0), "mixes instances"),
        (call("sum"), "one tensor for all instances"),
        (call("transpose.int", dim0=0, dim1=1), "do not follow the batch"),
        (call("softmax.int", dim=3), "Dimension out of range"),
    ],
)
def test_a_call_is_tried_for_its_form_and_for_keeping_instances_apart(
    bench: Bench, request_: TryCalls, expected: Any
) -> None:
    run = bench.pool.ask(TARGETS[0], request_)
    if isinstance(expected, str):
        assert not run.ok
        assert expected in run.message
        return
    assert run.ok, run.message
    assert run.reply.specs["y"] == (expected,)
    assert run.reply.model.layers[0].batch == (0,)


def test_a_campaign_on_a_program(bench: Bench, tmp_path: Path) -> None:
    targets = tuple(BUILT_IN[name] for name in TARGETS)
    job = FuzzJob(
        (SeedFile("images", bench.files["images"], None),), targets, budget=Budget(mutants=40)
    )
    result = start(job, tmp_path / "out", work=in_pool(bench.pool))
    assert result["tested"] == 40
    assert result["valid"] >= 36, result["invalid_examples"]  # some numbers cannot be inverted
    assert result["findings"] == []
