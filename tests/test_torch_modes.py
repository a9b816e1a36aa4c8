"""The modes of PyTorch that nobody gets by default: they run, and agree."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.core.protocol import RunModel
from outvote.dialects.torch_export.targets import BUILT_IN, probe
from outvote.run.pool import Pool
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
