"""PyTorch programs as people transform them: they agree, or it is told what spoils them."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import outvote
from conftest import joined
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import check_in
from outvote.core.target import Target
from outvote.dialects.torch_export.targets import BUILT_IN
from outvote.run.pool import Pool
from test_ground_truth import WORD
from torch_programs import saved

pytestmark = pytest.mark.frameworks

EAGER = BUILT_IN["torch:eager"]
TWINS = {t.twin: t for t in BUILT_IN.values() if t.twin and not t.requirements}
LOSSY = ("fp16", "bf16", "int8")
SPOILING = Path(__file__).with_name("torch_spoiling.py")


class Classifier(nn.Module):
    """A convolution, a hidden layer and scores."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3)
        self.hidden = nn.Linear(4 * 36, 16)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Any) -> Any:
        h = torch.relu(self.stem(x)).flatten(1)
        return self.head(torch.relu(self.hidden(h)))


class Overflowing(nn.Module):
    """The square of thousands is more than float16 holds."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Linear(4, 4, bias=False)
        self.scale.weight.data = 2000 * torch.eye(4)

    def forward(self, x: Any) -> Any:
        h = self.scale(x)
        return (h * h) * 1e-6


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    """Twins whose tools are wrong; a script of its own is a cause."""
    found = {}
    for name in LOSSY:
        script = tmp_path_factory.mktemp("wrong") / f"{name}.py"
        shutil.copy(SPOILING, script)
        found[name] = replace(TWINS[name], name=f"wrong {name}", setup=script, env={"SPOILS": name})
    return found


def checked(module: Any, pool: Pool, folder: Path, *twins: Target, **more: Any) -> Checked:
    torch.manual_seed(1)
    model = module()
    shape = (2, 4) if module is Overflowing else (2, 1, 8, 8)
    free = ({0: torch.export.Dim("n")},)
    path = saved(model, (torch.randn(*shape),), folder / "model.pt2", free)
    job = Job(model=path, targets=(EAGER, *twins), count=6, minimise=0, **more)
    return check_in(pool, job, out=folder / "out")


def rows(found: Checked) -> dict[str, dict[str, Any]]:
    return {row["target"]: row for row in check_result(found)["twins"]}


def test_what_loses_nothing_agrees_and_what_rounds_is_told_as_that(
    program_pool: Pool, tmp_path: Path
) -> None:
    """Of those that lose nothing one, drawn by the commit; test_torch_modes.py compiles."""
    lossless = random.Random(WORD).choice([n for n in TWINS if n not in (*LOSSY, "compiled")])
    names = (*LOSSY, lossless)
    found = checked(Classifier, program_pool, tmp_path, *(TWINS[name] for name in names))
    assert all(run.ok for run in found.runs.values()), found.runs
    assert found.verdict == "consistent", [f.title for f in found.findings]
    fingerprints = [f.fingerprint for f in found.findings]
    assert len(set(fingerprints)) == len(fingerprints) >= len(LOSSY)
    told = {row["transformation"]: row["verdict"] for row in check_result(found)["twins"]}
    assert told == {name: "precision" if name in LOSSY else "agrees" for name in names}
    for name in LOSSY:
        row = rows(found)[TWINS[name].name]
        assert row["answers"]["instances"] == 6
        lost = [layer for layer in row["layers"] if layer["alone"]]
        assert lost, name
        assert all(layer["alone"] < 0.1 for layer in lost)
        if name == "int8":  # it quantises products with constants, and nothing else
            assert {layer["kind"] for layer in lost} == {"aten.linear"}


def test_a_tool_that_is_wrong_is_beyond_what_its_type_explains(
    wrong: dict[str, Target], program_pool: Pool, tmp_path: Path
) -> None:
    with joined(program_pool, *wrong.values()):
        found = checked(Classifier, program_pool, tmp_path, *wrong.values())
    line = Classifier.forward.__code__.co_firstlineno + 2
    guilty = ("spoilt", f"hidden (test_torch_twins.py:{line})")
    told = {name: (row["verdict"], row["spoilt"]) for name, row in rows(found).items()}
    assert told == {target.name: guilty for target in wrong.values()}
    spoilt = [f for f in found.findings if f.triage != "precision"]
    assert {f.accused for f in spoilt} == set(told)


def test_what_float16_cannot_hold_is_spoilt_at_its_line_and_proved_by_a_script(
    program_pool: Pool, tmp_path: Path
) -> None:
    found = checked(Overflowing, program_pool, tmp_path, TWINS["fp16"], TWINS["bf16"])
    told = {name: (row["verdict"], row["spoilt"]) for name, row in rows(found).items()}
    assert told["twin:torch:bf16"][0] == "precision"
    assert told["twin:torch:fp16"][0] == "spoilt"
    line = Overflowing.forward.__code__.co_firstlineno + 2
    assert f"test_torch_twins.py:{line}" in str(told["twin:torch:fp16"][1])


def test_the_script_transforms_the_program_itself(program_pool: Pool, tmp_path: Path) -> None:
    torch.manual_seed(1)
    path = saved(Overflowing(), (torch.randn(2, 4),), tmp_path / "model.pt2")
    targets = (EAGER, TWINS["fp16"])
    job = Job(model=path, targets=targets, minimise=4.0)
    found = check_in(program_pool, job, out=tmp_path / "out")
    (finding,) = [f for f in found.findings if f.triage != "precision"]
    script = tmp_path / "out" / found.repros[finding.fingerprint]
    assert "outvote" not in script.read_text()
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    told = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert told["torch:eager"].startswith("ok:")
    assert told["twin:torch:fp16"].startswith("WRONG:")


def test_twins_are_asked_for_from_python_too() -> None:
    x = np.random.default_rng(0).normal(size=(4, 1, 8, 8)).astype(np.float32)
    result = outvote.check(Classifier(), x, targets=["torch:eager"], twins=["bf16"])
    (row,) = result.data["twins"]
    assert (row["transformation"], row["original"]) == ("bf16", "torch:eager")
