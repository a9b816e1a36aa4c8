"""Campaigns on programs of PyTorch's own samples: drawn by number, sifted, cut to a call."""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from conftest import in_pool, joined
from outvote.bench.bulk import CampaignSieve
from outvote.bench.sieve import GraphSieve
from outvote.campaign.job import Budget, FuzzJob
from outvote.commands.fuzz.run import start
from outvote.core.batch import (
    DrawCases,
    GraphAnswer,
    GraphCase,
    GraphsDrawn,
    GraphsRan,
    RunGraphs,
    answers_in,
    cases_in,
    packed_answers,
    packed_cases,
)
from outvote.core.errors import ProtocolError
from outvote.core.protocol import ModelRead
from outvote.core.target import Outcome, Run, Target
from outvote.dialects.torch_export import bulk
from outvote.dialects.torch_export.nouns.program import program_in, written_program
from outvote.dialects.torch_export.targets import BUILT_IN, probe
from outvote.run.pool import Pool
from torch_programs import planted

EAGER, DECOMPOSED = BUILT_IN["torch:eager"], BUILT_IN["torch:decomposed"]


def test_a_program_travels_as_bytes_and_what_is_none_is_refused() -> None:
    model, _, right = probe()
    forms = {"y": (((None, 2), "float32"),)}
    read = ModelRead(model=model, output_shapes=[list(right.shape)], specs=forms)
    assert program_in(written_program(read)) == read
    for content in (b"", b"{", b"[]", b'{"model": 3}'):
        with pytest.raises(ProtocolError):
            program_in(content)


class Counting:
    """A pool that draws and runs numbers, and counts which of them each target was given."""

    def __init__(self) -> None:
        self.targets = {name: replace(EAGER, name=name) for name in ("quick", "slow")}
        self.given: dict[str, list[int]] = {"quick": [], "slow": []}

    def add(self, target: Target) -> None:
        self.targets[target.name] = target

    def ask(self, name: str, request: Any) -> Run[Any]:
        if isinstance(request, DrawCases):
            last = request.first + request.count
            coming = [GraphCase(str(n).encode(), []) for n in range(request.first, last)]
            drawn = packed_cases(coming)
            return Run(name, Outcome.OK, GraphsDrawn(cases=drawn, refused=0))
        assert isinstance(request, RunGraphs)
        numbers = [int(case.content) for case in cases_in(request.cases)]
        self.given[name.split()[0]] += numbers
        told = packed_answers([GraphAnswer(Outcome.OK, [np.array(n)]) for n in numbers])
        return Run(name, Outcome.OK, GraphsRan(answers=told))


@pytest.mark.parametrize(("every", "count"), [(16, 64), (40, 8), (3, 5), (1, 4)])
def test_a_slow_target_gets_one_of_so_many_cases(every: int, count: int) -> None:
    counting = Counting()
    wanted = DrawCases(seed=0, first=0, count=count)
    sieve = GraphSieve(cast(Pool, counting), ["quick", "slow"], "quick", wanted, {"slow": every})
    with sieve:
        packs = list(itertools.islice(sieve.packs(), 2 * every))
    tested = {n for pack in packs for n in range(pack.first, pack.first + count)}
    assert tested <= set(counting.given["quick"])
    slow = [n for n in counting.given["slow"] if n in tested]
    assert len(slow) == len(set(slow))
    assert abs(len(slow) - len(tested) / every) <= 2
    assert every == 1 or len({n % count for n in slow}) > 1  # not always the same place


def test_a_stretch_ends_where_the_next_one_begins() -> None:
    """However many packs a second holds: what follows is tried by whoever has the next stretch."""
    counting = Counting()
    targets = tuple(counting.targets.values())
    wanted = DrawCases(seed=0, first=0, count=8)
    sieve = CampaignSieve(
        cast(Pool, counting), targets, "quick", wanted, frozenset(), lambda case: None
    )
    try:
        told = list(sieve.sifted(16, 56))
    finally:
        sieve.close()
    assert told[0].first == 16
    assert sum(one.tested for one in told) == 40


class Dying(Counting):
    """A pool whose drawing worker dies of one number."""

    def ask(self, name: str, request: Any) -> Run[Any]:
        if isinstance(request, DrawCases) and 0 <= 5 - request.first < request.count:
            return Run(name, Outcome.CRASH, message="the process died")
        return super().ask(name, request)


def test_a_number_whose_draw_kills_the_worker_gives_way_to_another() -> None:
    dying = Dying()
    wanted = DrawCases(seed=0, first=0, count=8)
    with GraphSieve(cast(Pool, dying), ["quick"], "quick", wanted) as sieve:
        pack = next(iter(sieve.packs()))
    numbers = dying.given["quick"][:8]
    assert numbers == [0, 1, 2, 3, 4, (1 << 40) + 5, 6, 7]
    assert pack.tested == 8


def drawn(pool: Pool, **more: Any) -> list[GraphCase]:
    run = pool.ask(EAGER.name, DrawCases(**{"seed": 3, "first": 0, "count": 60, "most": 3, **more}))
    assert run.ok, run.message
    return cases_in(run.reply.cases)


@pytest.mark.frameworks
def test_programs_are_drawn_by_their_numbers_and_run(program_pool: Pool) -> None:
    pool = program_pool
    cases = drawn(pool)
    again = drawn(pool, first=50, count=10)
    assert [one.content for one in again] == [one.content for one in cases[50:]]
    for one, other in zip(again, cases[50:], strict=True):
        assert [x.tobytes() for x in one.feeds] == [x.tobytes() for x in other.feeds]
    run = pool.ask(EAGER.name, RunGraphs(cases=packed_cases(cases), steps=60))
    answers = answers_in(run.reply.answers, 60)
    assert [one.message for one in answers if one.outcome is not Outcome.OK] == []
    models = [program_in(case.content).model for case in cases]
    kinds = {layer.kind for model in models for layer in model.layers}
    assert len(kinds) > 50
    types = {item.dtype for model in models for item in model.inputs}
    assert len(types) >= 5
    assert {"bfloat16", "float16"} <= types
    for case, answer in zip(cases, answers, strict=True):  # as it was announced
        read = program_in(case.content)
        told = [read.specs[ref.producer][ref.index] for ref in read.model.outputs]
        found = [(array.shape, array.dtype.name) for array in answer.outputs]
        wide = {"bfloat16": "float32"}  # as which it travels
        assert found == [(tuple(shape), wide.get(dtype, dtype)) for shape, dtype in told]


@pytest.mark.frameworks
def test_kinds_may_be_named_and_those_that_are_none_are_said(program_pool: Pool) -> None:
    pool = program_pool
    (case,) = drawn(pool, count=1, most=1, kinds=("nn.functional.conv2d",))
    kinds = [layer.kind for layer in program_in(case.content).model.layers]
    assert kinds[-1].startswith("aten.conv2d")
    for name in ("no_such", "jiterator_unary"):
        run = pool.ask(EAGER.name, DrawCases(seed=0, first=0, count=1, kinds=(name,)))
        assert run.refused
        assert name in run.message


@pytest.mark.frameworks
def test_a_planted_fault_is_found_and_cut_to_its_call(
    program_pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("nn.functional.silu", "tanh")
    monkeypatch.setattr(bulk, "DrawCases", functools.partial(DrawCases, kinds=kinds))
    fault = planted("silu_too_steep", "torch:decomposed")
    targets = (EAGER, DECOMPOSED, fault)
    job = FuzzJob((), targets, "layers", Budget(mutants=64), confirm=1, minimise=2.0)
    with joined(program_pool, fault):
        result = start(job, tmp_path / "out", work=in_pool(program_pool))
    told = {(f["accused"], f["layer_kind"]) for f in result["findings"]}
    assert told == {(fault.name, "aten.silu")}
    (finding, *_) = result["findings"]
    assert finding["triage"] == "bug"
    assert finding["minimal"]["layers"] == 1
    script = tmp_path / "out" / "findings" / finding["fingerprint"] / "repro.py"
    assert "torch.ops.aten.silu" in script.read_text()  # test_torch_check.py runs one
