"""PyTorch programs on real targets: clean ones agree, planted faults are accused where they are."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from collections.abc import Sequence
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
from outvote.commands.check.run import check_in
from outvote.core.blobs import BlobStore
from outvote.core.errors import UsageError
from outvote.core.target import Target
from outvote.dialects.torch_export.live import saved_call
from outvote.dialects.torch_export.script import script, short
from outvote.dialects.torch_export.targets import BUILT_IN
from outvote.dialects.torch_export.workers.shared.read import read
from outvote.findings.finding import Finding
from outvote.run.pool import Pool
from torch_programs import ARCHIVES, ConvNet, archive, planted, saved

pytestmark = pytest.mark.frameworks

HONEST = tuple(BUILT_IN[name] for name in ("torch:eager", "torch:decomposed", "openvino:torch"))


def checked(pool: Pool, path: Path, targets: Sequence[Target], **more: Any) -> Checked:
    return check_in(pool, Job(model=path, targets=tuple(targets), **more))


@pytest.mark.parametrize("name", ARCHIVES)
def test_clean_programs_agree_call_by_call(name: str, program_pool: Pool, tmp_path: Path) -> None:
    found = checked(program_pool, archive(name, tmp_path), HONEST[:2], every_layer=True)
    assert all(run.ok for run in found.runs.values()), found.runs
    assert found.verdict == "consistent", [f.title for f in found.findings]
    assert not found.findings


class Guilty(nn.Module):
    """Something before the function at fault, and something behind it."""

    def __init__(self, act: nn.Module) -> None:
        super().__init__()
        self.stem = nn.Linear(3, 4)
        self.act = act
        self.head = nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        return self.head(self.act(self.stem(x)))


LINE = Guilty.forward.__code__.co_firstlineno + 1  # of the call of `act`


def spoilt(
    act: nn.Module, pool: Pool, targets: Sequence[Target], folder: Path, **more: Any
) -> Finding:
    """What is said of a module whose function is at fault on one of the targets."""
    torch.manual_seed(3)
    free = ({0: torch.export.Dim("n")},)
    path = saved(Guilty(act), (torch.randn(2, 3),), folder / "m.pt2", free)
    found = checked(pool, path, targets, **more)
    assert found.verdict == "inconsistent"
    assert [name for name, run in found.runs.items() if not run.ok] == []
    (finding,) = found.findings
    return finding


def test_a_compiler_at_fault_is_accused_by_module_and_line(
    program_pool: Pool, tmp_path: Path
) -> None:
    """Other places of faults: test_torch_ground_truth.py."""
    fault = planted("relu_leaks", "torch:inductor")
    targets = (HONEST[0], HONEST[2], fault)
    with joined(program_pool, fault):
        finding = spoilt(nn.ReLU(), program_pool, targets, tmp_path, minimise=0)
    assert finding.accused == fault.name
    assert finding.layer is not None
    assert finding.layer.name == f"act (test_torch_check.py:{LINE})"
    assert finding.layer.kind == "aten.relu"


def test_a_fault_is_made_small_and_proved_by_a_script(program_pool: Pool, tmp_path: Path) -> None:
    fault = planted("silu_too_steep", "torch:decomposed")
    targets = (HONEST[0], HONEST[2], fault)
    with joined(program_pool, fault):
        finding = spoilt(nn.SiLU(), program_pool, targets, tmp_path, minimise=4.0)
    assert (finding.triage, finding.accused) == ("bug", fault.name)
    assert finding.proof is not None
    specimen = finding.proof.specimen
    assert [layer.kind for layer in specimen.model.layers] == ["aten.silu"]
    assert specimen.numbers <= 16
    text = script(finding, {t.name: t for t in targets}, program_pool, tmp_path)
    assert text is not None
    assert "outvote" not in text.replace(str(fault.setup), "")
    (tmp_path / "repro.py").write_text(text)
    command = [sys.executable, str(tmp_path / "repro.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert [name for name, line in lines.items() if "WRONG" in line] == [fault.name], done.stdout
    plain = short(finding, {fault.name: replace(fault, setup=None)}, program_pool)
    assert plain is not None
    assert "# expected, by" in plain
    printed: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(plain, printed)
    assert out.getvalue().startswith("tensor(")


class Undecided(nn.Module):
    """Its path depends on a value."""

    def forward(self, x: Any) -> Any:
        return x + 1 if x.sum() > 0 else x - 1


class TwoInputs(nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        return torch.relu(a) * b


@pytest.mark.parametrize("batch", [1, 3])
def test_a_module_is_exported_for_the_user_with_a_free_batch(batch: int, tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(4, 3), nn.Dropout(), nn.BatchNorm1d(3)).train()
    path = saved_call(module, [np.ones((batch, 4), np.float32)], tmp_path / "m")
    assert path is not None
    model = read(path, BlobStore(tmp_path)).model
    assert (model.inputs[0].shape, model.inputs[0].batch) == ((None, 4), 0)
    assert module.training  # as it was, though it was exported as it answers
    assert model.layers[-1].config["training"] is False


def test_why_a_module_cannot_be_exported_is_said_in_plain_words(tmp_path: Path) -> None:
    x = np.ones(2, np.float32)
    with pytest.raises(UsageError, match=r"Undecided cannot be exported.*depends on values"):
        saved_call(Undecided(), [x], tmp_path / "m")
    with pytest.raises(UsageError, match="exported with its inputs"):
        saved_call(Undecided(), [], tmp_path / "m")
    with pytest.raises(UsageError, match=r"itself fails on these inputs: TypeError.*missing 1 req"):
        saved_call(TwoInputs(), [x], tmp_path / "m")
    with pytest.raises(UsageError, match="Linear itself fails on these inputs: RuntimeError"):
        saved_call(nn.Linear(4, 3), [np.ones((2, 4), np.int64)], tmp_path / "m")
    with pytest.raises(UsageError, match=r"has tensors on meta.*give module.cpu\(\)"):
        saved_call(nn.Linear(4, 3, device="meta"), [np.ones((2, 4), np.float32)], tmp_path / "m")
    assert saved_call(object(), [x], tmp_path / "m") is None


def test_a_module_is_checked_from_python() -> None:
    x = np.random.default_rng(0).normal(size=(3, 3, 9, 9)).astype(np.float32)
    result = outvote.check(ConvNet(), x, targets=["torch:eager", "torch:module"])
    assert result.data["verdict"] == "consistent"
    assert result.data["data"]["instances"] == 3
    ran = {target["name"]: target["outcome"] for target in result.data["targets"]}
    assert ran == {"torch:eager": "ok", "torch:module": "ok"}


class OtherwiseExported(nn.Module):
    """What Python decides when it is exported is not what it decides when it runs."""

    def forward(self, x: Any) -> Any:
        return torch.sin(x) * (1.0 if torch.compiler.is_compiling() else 1.5)


def test_a_module_is_held_against_what_was_exported_of_it() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    result = outvote.check(OtherwiseExported(), x, targets=["torch:eager"])
    (finding,) = result.data["findings"]
    assert "torch:module" in finding["title"]
    assert finding["triage"] == "unknown"  # whether the program or the module is meant
    assert "what torch.export wrote down is not what the module does" in finding["reason"]
    assert "several layers" not in finding["reason"]


def test_what_decompositions_keep_whole_is_not_their_own_vote() -> None:
    table = torch._decomp.core_aten_decompositions()
    packets = [getattr(torch.ops.aten, name) for name in dir(torch.ops.aten)]
    overloads = [
        getattr(packet, name)
        for packet in packets
        if isinstance(packet, torch._ops.OpOverloadPacket)
        for name in packet.overloads()
    ]
    kept = [op for op in overloads if torch.Tag.core in op.tags and op not in table]
    assert len(kept) > 100
    target = BUILT_IN["torch:decomposed"]
    kinds = [str(op).removesuffix(".default") for op in kept]
    assert [kind for kind in kinds if target.implementation_of(kind) != "torch"] == []
    assert target.implementation_of("aten.silu") == target.library
