"""What Inductor makes one loop of, and a fault that no call alone shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from conftest import joined
from outvote.bench.reader import read_file
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.dialects.torch_export.regions import region_of
from outvote.dialects.torch_export.targets import BUILT_IN
from outvote.run.pool import Pool
from torch_programs import saved

pytestmark = pytest.mark.frameworks

INDUCTOR = BUILT_IN["torch:inductor"]
# Between its graph and its loops: relu of a sum becomes abs. Neither call alone is touched.
TAKES_ABS = """
import torch
from torch._inductor import config

aten = torch.ops.aten


def mistaken(graph):
    for node in graph.nodes:
        if node.target is aten.relu.default and node.args[0].target is aten.add.Tensor:
            node.target = aten.abs.default


config.post_grad_custom_post_pass = mistaken
"""


class Shifted(nn.Module):
    """A product, then what fits into one loop."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(4))

    def forward(self, x: Any) -> Any:
        h = x @ self.weight
        return torch.relu(h + 0.5) * 3.0


def program(folder: Path) -> Path:
    torch.manual_seed(1)
    return saved(Shifted(), (torch.randn(6, 4),), folder / "model.pt2")


def test_calls_of_one_loop_are_told_together(program_pool: Pool, tmp_path: Path) -> None:
    model = read_file(program_pool, "torch:eager", program(tmp_path)).reply.model
    x = np.ones((6, 4), np.float32)
    kinds = {layer.name: layer.kind for layer in model.layers}
    product, added, relu, scaled = kinds
    assert [kinds[name] for name in (added, relu)] == ["aten.add.Tensor", "aten.relu"]
    region = region_of(program_pool, INDUCTOR.name, model, [x], relu)
    assert region == (added, relu, scaled)
    assert region_of(program_pool, INDUCTOR.name, model, [x], product) == ()
    assert region_of(program_pool, "torch:eager", model, [x], relu) == ()


def test_a_fault_of_calls_together_is_placed_and_their_loop_named(
    program_pool: Pool, tmp_path: Path
) -> None:
    script = tmp_path / "mistaken.py"
    script.write_text(TAKES_ABS)
    planted = replace(INDUCTOR, name="planted", setup=script)
    targets = (BUILT_IN["torch:eager"], BUILT_IN["torch:decomposed"], planted)
    with joined(program_pool, planted):
        job = Job(model=program(tmp_path), targets=targets, minimise=0)
        found = check_in(program_pool, job, out=tmp_path / "out")
    (finding,) = [f for f in found.findings if f.triage != "precision"]
    assert "in the whole graph only" in finding.title
    assert finding.layer is not None
    assert finding.layer.kind == "aten.relu"
    assert "planted fuses aten.add.Tensor 'add" in finding.reason, finding.reason
    assert "aten.relu 'relu" in finding.reason
