"""The modes of PyTorch that nobody gets by default: they run, and agree."""

from __future__ import annotations

import platform
import random
from pathlib import Path

import numpy as np
import pytest

from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.core.protocol import RunModel
from outvote.dialects.torch_export.targets import BUILT_IN, probe
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.targets.environments.provide import provide
from test_ground_truth import WORD, told
from torch_programs import archive

pytestmark = pytest.mark.frameworks
TRACED = ("torch:eager", "torch:symbolic", "torch:aot_eager", "torch:script")
COMPILED = (
    "torch:aoti",
    "torch:inductor",
    "torch:dynamic",
    "twin:torch:compiled",
)  # for many seconds
BROUGHT: tuple[str, ...] = ("executorch:torch", "litert:torch", "twin:torch:litert")
if platform.machine() != "x86_64":  # nobody builds LiteRT's converter for others
    BROUGHT = BROUGHT[:1]


def test_traced_programs_agree(program_pool: Pool, tmp_path: Path) -> None:
    targets = tuple(BUILT_IN[name] for name in TRACED)
    found = check_in(program_pool, Job(model=archive("conv", tmp_path), targets=targets))
    assert all(run.ok for run in found.runs.values()), found.runs
    assert found.verdict == "consistent"


def test_a_program_is_compiled(program_pool: Pool) -> None:
    """By one of those that write C++, drawn by the commit."""
    name = random.Random(WORD).choice(COMPILED)
    model, (x,), answer = probe()
    request = RunModel(model=model, inputs=(program_pool.blobs.put(x),), batch=1)
    run = program_pool.ask(name, request)
    assert run.ok, told(WORD, [name, run.message])
    np.testing.assert_array_equal(run.reply.outputs.arrays[0], answer)


@pytest.mark.parametrize("name", BROUGHT)
def test_a_program_runs_in_an_environment_of_its_own(name: str) -> None:
    """Which `make classic` builds beside other tests, as those of the classic targets."""
    model, (x,), answer = probe()
    with LocalPool(provide((BUILT_IN[name],))) as pool:
        request = RunModel(model=model, inputs=(pool.blobs.put(x),), batch=1)
        run = pool.ask(name, request)
    assert run.ok, run.message
    np.testing.assert_array_equal(run.reply.outputs.arrays[0], answer)


@pytest.mark.parametrize(
    ("said", "gap"),
    [
        ("fatal error: Python.h: No such file or directory", True),
        ("fatal error: 'Python.h' file not found", True),
        ("error: no match for 'operator+'", False),
    ],
)
def test_a_machine_that_cannot_compile_is_no_fault_of_inductor(said: str, gap: bool) -> None:
    from outvote.dialects.torch_export.workers.shared.compile import is_gap_of_compiler

    assert is_gap_of_compiler(RuntimeError(f"C++ compile error\n{said}")) is gap


def test_decompositions_are_what_computes(tmp_path: Path) -> None:
    """A decomposition that is planted is run, also where another one calls it."""
    import torch

    from outvote.dialects.torch_export.workers.modes.decomposed import create

    aten = torch.ops.aten
    runtime, x = create(tmp_path), torch.tensor([0.5, -0.5])
    graph = torch.fx.symbolic_trace(lambda x: (aten.mish.default(x), aten.relu.default(x)))
    released = runtime.load(graph, (x,))(x)
    for found, asked in zip(released, graph(x), strict=True):
        torch.testing.assert_close(found, asked)
    runtime.table[aten.softplus.default] = lambda x, *more: x * 0
    planted, whole = runtime.load(graph, (x,))(x)
    assert torch.equal(planted, x * 0)  # mish is x tanh(softplus(x))
    assert torch.equal(whole, graph(x)[1])
