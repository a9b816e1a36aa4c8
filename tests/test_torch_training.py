"""`check --train` on PyTorch programs: who is accused of what, at which call, by which script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import outvote
from conftest import joined
from outvote.cli import main
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import check_in
from outvote.commands.record import written
from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.errors import UsageError
from outvote.core.lesson import Lesson
from outvote.core.model import Model
from outvote.core.train_protocol import Move, PullBack, TrainSteps
from outvote.dialects.torch_export.nouns.node import learned_of
from outvote.dialects.torch_export.targets import BUILT_IN
from outvote.dialects.torch_export.workers.shared.read import read
from outvote.dialects.torch_export.workers.shared.save import save
from outvote.findings.finding import Finding
from outvote.findings.gate import STRICT
from outvote.run.pool import Pool
from result_form import require_form

pytestmark = pytest.mark.frameworks

THREE = ("torch:eager", "torch:decomposed", "torch:aot_eager")
SGD = {"class_name": "SGD", "config": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}}
MSE = {"class_name": "MSELoss"}
FREE = ({0: torch.export.Dim("n")},)
# One process each: what a library gives is right, and its way back is not.
PLANTS = {
    # The decomposition of an operator's way back lacks a factor.
    "gelu": """
import torch
from torch._decomp import decomposition_table as table

way_back = torch.ops.aten.gelu_backward.default
released = table[way_back]
table[way_back] = lambda *given, **more: 0.9 * released(*given, **more)
""",
    # At the kink it gives the other one-sided derivative.
    "leaky": """
import torch
from torch._decomp import decomposition_table as table


def way_back(g, x, slope, of_result):
    return torch.where(x >= 0, g, g * slope)


table[torch.ops.aten.leaky_relu_backward.default] = way_back
""",
    # A formula of autograd holds a part of the function to be constant.
    "silu": """
import torch


class Silu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with torch._C._AutoDispatchBelowAutograd():
            y = torch.ops.aten.silu.default(x)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * torch.sigmoid(ctx.saved_tensors[0])


library = torch.library.Library("aten", "IMPL")
library.impl("silu", Silu.apply, "AutogradCPU")
""",
    # Weights decay by half of what they should.
    "decay": """
from torch.optim import SGD

made = SGD.__init__


def init(self, parameters, **config):
    made(self, parameters, **{**config, "weight_decay": config["weight_decay"] / 2})


SGD.__init__ = init
""",
}


class Guilty(nn.Module):
    """Something before the function at fault, and something behind it."""

    def __init__(self, act: nn.Module) -> None:
        super().__init__()
        self.stem = nn.Linear(5, 6)
        self.act = act
        self.head = nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.act(self.stem(x)))


LINE = Guilty.forward.__code__.co_firstlineno + 1


class Picture(nn.Module):
    """What keeps statistics, and what drops numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.norm = nn.BatchNorm2d(3)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(27, 4)

    def forward(self, x: Any) -> Any:
        h = torch.max_pool2d(torch.relu(self.norm(self.conv(x))), 2)
        return self.head(self.drop(h.flatten(1)))


class Words(nn.Module):
    """Ids, states, and the last of them."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.states = nn.LSTM(4, 5, batch_first=True)
        self.head = nn.Linear(5, 2)

    def forward(self, ids: Any) -> Any:
        return self.head(self.states(self.embed(ids))[0][:, -1])


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3))


PICTURES = torch.randn(4, 1, 8, 8)
CLEAN: dict[str, tuple[Callable[[], nn.Module], torch.Tensor]] = {
    "perceptron": (perceptron, torch.randn(4, 5)),
    "picture": (Picture, PICTURES),
    "words": (Words, torch.randint(0, 7, (4, 6))),
}


def training(module: nn.Module, example: torch.Tensor, folder: Path) -> Path:
    """The archive of a program in training mode."""
    path = folder / "model.pt2"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*assigned during export")  # of every nn.LSTM
        program = torch.export.export(module.train(), (example,), dynamic_shapes=FREE)
    torch.export.save(program, path)
    return path


@pytest.fixture(scope="module")
def pool(program_pool: Pool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    folder, planted = tmp_path_factory.mktemp("plants"), []
    for name, text in PLANTS.items():
        script = folder / f"{name}.py"
        script.write_text(text)
        base = "torch:decomposed" if name in ("gelu", "leaky") else "torch:eager"
        target = replace(BUILT_IN[base], name=name, library=name, borrows={}, defines=False)
        planted.append(replace(target, setup=script))
    with joined(program_pool, *planted) as running:
        yield running


def checked(pool: Pool, path: Path, *names: str, **more: Any) -> Checked:
    lesson = Lesson(more.pop("optimizer", SGD), more.pop("loss", None), steps=2)
    targets = tuple(pool.targets[name] for name in names)
    out = more.pop("out", path.parent / "out")
    found = check_in(pool, Job(path, targets, lesson=lesson, **more), out=out)
    require_form(written(check_result(found), out, STRICT))
    return found


def stages(found: Checked) -> dict[str, Any]:
    return {row["stage"]: row for row in check_result(found)["training"]["stages"]}


@pytest.mark.parametrize("name", CLEAN)
def test_released_modes_agree_in_every_stage(name: str, pool: Pool, tmp_path: Path) -> None:
    torch.manual_seed(1)
    make, example = CLEAN[name]
    found = checked(pool, training(make(), example, tmp_path), *THREE, every_layer=True)
    assert [f.title for f in found.findings] == []
    rows = stages(found)
    assert list(rows) == ["forward", "loss", "gradient", "statistics", "optimiser", "steps"]
    assert all(row["agrees"] for row in rows.values())
    assert rows["gradient"]["exercises"] > 4
    assert bool(rows["statistics"]["arrays"]) == (name == "picture")  # a mean and a variance
    dropped = [text for text in found.warnings if "drop" in text]
    assert len(dropped) == (name == "picture"), found.warnings


def spoilt(
    act: nn.Module, name: str, pool: Pool, folder: Path, base: str, **more: Any
) -> tuple[Finding, Path]:
    """What is said of a module whose function is at fault on one target."""
    torch.manual_seed(3)
    path = training(Guilty(act), torch.randn(4, 5), folder)
    (finding,) = checked(pool, path, base, name, "torch:aot_eager", **more).findings
    return finding, path


@pytest.mark.parametrize(("name", "act"), [("gelu", nn.GELU()), ("silu", nn.SiLU())])
def test_a_wrong_way_back_is_a_bug_at_its_call_and_a_script_proves_it(
    name: str, act: nn.Module, pool: Pool, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    finding, path = spoilt(act, name, pool, tmp_path, "torch:eager", out=out)
    assert (finding.accused, finding.triage) == (name, "bug")
    assert finding.stage is not None
    assert (finding.stage.name, finding.stage.subject) == ("gradient", f"aten.{name}")
    assert finding.layer is not None
    assert finding.layer.name == f"act (test_torch_training.py:{LINE})"
    assert "Central differences in float64" in finding.reason
    (script,) = out.glob("findings/*/repro.py")
    env = {key: value for key, value in os.environ.items() if key != "MODE"}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env)
    said = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()}
    assert said == {"torch:eager": "ok:", name: "WRONG:", "torch:aot_eager": "ok:"}, done.stdout
    assert done.returncode == 1
    alone = Job(path, tuple(pool.targets[n] for n in ("torch:eager", name)))
    assert check_in(pool, alone).verdict == "consistent"  # forward nothing is to be seen


def test_either_side_of_a_kink_is_a_difference(pool: Pool, tmp_path: Path) -> None:
    """At 0 one target gives the slope on the one side, the other that on the other side."""
    x = np.array([[0.0, -1.0, 2.0, 0.0, 1.0], [0.0, 3.0, -4.0, 5.0, 0.0]], "float32")
    for act in (nn.ReLU(), nn.LeakyReLU()):
        path = training(nn.Sequential(act), torch.randn(4, 5), tmp_path)
        assert checked(pool, path, *THREE[:2], data={"x": x}).findings == []
    (finding,) = checked(pool, path, "torch:eager", "leaky", data={"x": x}).findings
    assert (finding.triage, finding.accused) == ("difference", None), finding.reason
    assert "kink" in finding.reason


def test_an_update_is_a_stage_of_its_own(pool: Pool, tmp_path: Path) -> None:
    finding, _ = spoilt(nn.Tanh(), "decay", pool, tmp_path, "torch:decomposed", out=tmp_path / "o")
    assert (finding.accused, finding.triage) == ("decay", "bug"), finding.reason
    assert finding.stage is not None
    assert finding.stage.name == "decay"
    (script,) = tmp_path.glob("o/findings/*/repro.py")
    for setup, says in ({}, "ok:"), ({"SETUP": str(pool.targets["decay"].setup)}, "WRONG:"):
        env = {**os.environ, "MODE": "eager", **setup}
        run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env)
        assert run.stdout.startswith(says), run.stdout + run.stderr


class Noisy(nn.Module):
    def forward(self, x: Any) -> Any:
        return x + torch.rand_like(x)


def test_what_draws_numbers_is_refused_and_what_gives_no_gradients_is_left_out(
    pool: Pool, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"layer 'rand_like \(test.*draws random numbers"):
        checked(pool, training(Noisy(), torch.randn(4, 5), tmp_path), *THREE[:2])
    path = training(perceptron(), torch.randn(4, 5), tmp_path)
    found = checked(pool, path, *THREE[:2], "torch:script")
    assert any("torch:script gives no gradients, and is left out" in w for w in found.warnings)
    with pytest.raises(UsageError, match="needs two targets that give gradients"):
        checked(pool, path, "torch:eager", "torch:script")


@pytest.mark.parametrize("name", THREE)
@pytest.mark.parametrize("wide", [False, True])
def test_gradients_and_steps_are_those_of_the_formula(
    name: str, wide: bool, pool: Pool, tmp_path: Path
) -> None:
    """Of a line through numbers: by its input, its weights, beside a point, and after two steps."""
    model = line(pool, tmp_path, wide)
    kind = "float64" if wide else "float32"
    x, c = (np.random.default_rng(seed).normal(size=(4, 1)).astype(kind) for seed in (0, 1))
    w, b = (pool.blobs.get(weight.digest) for weight in model.layers[0].weights)
    put, least = pool.blobs.put, 1e-11 if wide else 1e-5
    label = model.layers[0].name
    moves = (Move(label, 0, (0, 0), 2.0), Move("", 0, (1, 0), 3.0))
    pull = PullBack(model=model, inputs=(put(x),), cotangents=(put(c),), moves=moves, exact=wide)
    run = pool.ask(name, pull)
    assert run.ok, run.message
    found = {leaf.name: leaf.array for leaf in run.reply.gradients}
    for told, exact in (("input", c @ w), ("weight", c.T @ x), ("bias", c.sum(axis=0))):
        array = found[told]
        assert array is not None
        assert array.dtype == kind
        np.testing.assert_allclose(array, exact, rtol=least)
    moved = x.copy()
    moved[1, 0] = 3.0
    for beside, y in zip(run.reply.beside, (2 * x + b, moved @ w.T + b), strict=True):
        np.testing.assert_allclose(beside.outputs.arrays[0], y, rtol=least)
    plain = {"class_name": "SGD", "config": {"lr": 0.1}}
    given: dict[str, Any] = {"model": model, "inputs": (put(x),), "truth": put(c), "loss": MSE}
    steps = pool.ask(name, TrainSteps(**given, optimizer=plain, rounds=2, exact=wide)).reply
    losses, after = descended(x, c, w, b)
    np.testing.assert_allclose(steps.losses, losses, rtol=least)
    got = {leaf.name: leaf.array for leaf in steps.weights[-1]}
    for updated, wanted in zip((got["weight"], got["bias"]), after, strict=True):
        assert updated is not None
        np.testing.assert_allclose(updated, wanted, rtol=least)


def line(pool: Pool, folder: Path, wide: bool) -> Model:
    module = nn.Linear(1, 1).to(torch.float64 if wide else torch.float32)
    example = torch.randn(4, 1, dtype=torch.float64 if wide else torch.float32)
    return read(training(module, example, folder), pool.blobs).model


def descended(x: Array, y: Array, w: Array, b: Array) -> tuple[list[float], tuple[Array, Array]]:
    """The mean squared error before each of two steps, and the weights behind them."""
    losses = []
    for _ in range(2):
        apart = x @ w.T + b - y
        losses.append(float((apart**2).mean()))
        w, b = w - 0.2 * apart.T @ x / len(x), b - 0.2 * apart.mean(axis=0)
    return losses, (w, b)


def test_what_is_learned_is_read_and_saved(tmp_path: Path) -> None:
    """Parameters that are not frozen; equal numbers of two of them stay two."""
    module = Picture()
    module.head.bias.requires_grad = False
    blobs = BlobStore(tmp_path / "blobs")
    model = read(training(module, PICTURES, tmp_path), blobs).model

    def learned(model: Model) -> list[int]:
        return [len(learned_of(layer)) for layer in model.layers if layer.weights]

    assert sorted(learned(model)) == [0, 1, 2, 2]  # a count of batches, the head, and two more
    again = read(save(model, blobs, tmp_path / "again.pt2"), blobs).model
    assert learned(again) == learned(model)


def test_by_the_command_line(
    pool: Pool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = training(perceptron(), torch.randn(4, 5), tmp_path)
    told = ["check", str(path), "--targets", ",".join(THREE[:2]), "--out", str(tmp_path / "out")]
    sgd = '{"class_name": "SGD", "config": {"lr": 0.5}}'
    assert main([*told, "--train", "--loss", "huber", "--optimizer", sgd, "--steps", "1"]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["training"]["loss"] == {"class_name": "HuberLoss"}
    assert result["training"]["optimizer"]["config"] == {"lr": 0.5}
    assert main([*told, "--train", "--loss", "ctc"]) == 2
    assert "'ctc' is none that PyTorch programs are trained with here" in capsys.readouterr().err


def test_from_python() -> None:
    x = np.random.default_rng(0).normal(size=(4, 5)).astype("float32")
    result = outvote.check(perceptron(), x, targets=list(THREE[:2]), train=True, optimizer="adamw")
    assert result.verdict == "consistent"
    assert result.data["training"]["optimizer"] == {"class_name": "AdamW"}
