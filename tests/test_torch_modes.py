"""The modes of PyTorch that nobody gets by default: they run, and agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.core.protocol import RunModel
from outvote.dialects.torch_export.targets import BUILT_IN, probe
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from torch_programs import archive

pytestmark = pytest.mark.frameworks
NAMES = ("torch:eager", "torch:aot_eager", "torch:script", "torch:aoti")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with LocalPool([BUILT_IN[name] for name in NAMES]) as running:
        yield running


def test_traced_programs_agree(pool: Pool, tmp_path: Path) -> None:
    targets = tuple(BUILT_IN[name] for name in NAMES[:3])
    found = check_in(pool, Job(model=archive("conv", tmp_path), targets=targets))
    assert all(run.ok for run in found.runs.values()), found.runs
    assert found.verdict == "consistent"


def test_a_program_is_compiled_ahead(pool: Pool) -> None:
    model, (x,), answer = probe()
    request = RunModel(model=model, inputs=(pool.blobs.put(x),), batch=1)
    run = pool.ask("torch:aoti", request)
    assert run.ok, run.message
    np.testing.assert_array_equal(run.reply.outputs.arrays[0], answer)
