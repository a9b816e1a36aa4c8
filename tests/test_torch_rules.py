"""The mutation rules on PyTorch programs: mutants run, fit, can be made again and saved."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from outvote.bench.reader import read_file
from outvote.cli import main
from outvote.core.case import random_data
from outvote.core.protocol import Ran, Read, RunModel, Save
from outvote.core.target import Run
from outvote.dialects.torch_export.targets import BUILT_IN
from outvote.mutate.registry import all_rules, mutate
from outvote.mutate.subject import Subject
from outvote.mutate.tools import NoTools, Tools
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
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
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("models")
    files, subjects = {}, {}
    with LocalPool([BUILT_IN[name] for name in TARGETS]) as pool:
        pool.start()
        for name, (made, shape) in MODELS.items():
            torch.manual_seed(1)
            free = ({0: torch.export.Dim("n")},)
            files[name] = saved(made(), (torch.randn(shape),), folder / f"{name}.pt2", free)
            run = read_file(pool, TARGETS[0], files[name])
            assert run.ok, run.message
            subjects[name] = Subject.of(run.reply.model, run.reply.specs)
        yield Bench(pool, NoTools(pool.blobs), files, subjects)


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


def test_a_campaign_on_a_program(bench: Bench, tmp_path: Path) -> None:
    out, targets = tmp_path / "out", ",".join(TARGETS)
    asked = ["--targets", targets, "--budget", "40", "--out", str(out), "--quiet"]
    assert main(["fuzz", str(bench.files["images"]), *asked]) == 0
    result = json.loads((out / "result.json").read_text())
    assert result["tested"] == 40
    assert result["valid"] == 40
    assert result["findings"] == []
