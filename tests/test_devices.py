"""Targets on a GPU: who sees it, what they tell of it, and what a machine without one says."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onnx_models import convolution_net, saved
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.commands.targets.job import HealthJob
from outvote.commands.targets.run import health
from outvote.core.devices import ON_CUDA
from outvote.core.protocol import RunModel
from outvote.core.target import Outcome, Target
from outvote.dialects.keras.nouns.devices import GPU_MODES, HIGHEST, environment, on_gpu
from outvote.dialects.keras.targets import BUILT_IN, DEFAULT
from outvote.dialects.onnx import targets as onnx_targets
from outvote.dialects.torch_export import targets as torch_targets
from outvote.run.local import LocalPool
from test_ground_truth import WORD, told
from test_proof_lines import environments

ON_GPU = [t for t in BUILT_IN.values() if on_gpu(t.backend, t.mode)]


OF_ONNX = [t for t in onnx_targets.BUILT_IN.values() if t.device]
OF_TORCH = [t for t in torch_targets.BUILT_IN.values() if t.device]


def played(name: str) -> Target:
    """The target with the processor in the part of the GPU."""
    known = {**BUILT_IN, **onnx_targets.BUILT_IN, **torch_targets.BUILT_IN}
    return replace(known[name], env={"OUTVOTE_GPU": "cpu"})


def test_three_libraries_have_a_gpu_and_none_is_chosen_unasked() -> None:
    assert {t.name for t in ON_GPU} == {
        f"{backend}:{mode}{more}" for backend, mode in GPU_MODES.items() for more in ("", HIGHEST)
    }
    assert not {t.name for t in ON_GPU} & set(DEFAULT)


def test_runtimes_of_onnx_have_a_gpu_too() -> None:
    assert [t.name for t in OF_ONNX] == [
        "onnxruntime:cuda",
        "onnxruntime:cuda-highest",
        "openvino:onnx:gpu",
    ]
    assert not {t.name for t in OF_ONNX} & set(onnx_targets.DEFAULT)
    assert {t.name for t in BUILT_IN.values() if t.device} - {t.name for t in ON_GPU} == {
        "openvino:gpu"
    }
    for target in OF_ONNX:
        assert target.library not in {
            onnx_targets.BUILT_IN[n].library for n in onnx_targets.DEFAULT
        }
    assert set(ON_CUDA) == {"cuda", "cuda-highest"}


def test_cpu_and_gpu_of_a_library_are_two_votes_but_all_convolutions_are_of_cudnn() -> None:
    torch, cuda, jax = (BUILT_IN[n] for n in ("torch", "torch:cuda", "jax:cuda"))
    for kind, independent in (("Dense", 3), ("Conv2D", 2)):
        names = {t.implementation_of(kind) for t in (torch, cuda, jax)}
        assert len(names) == independent, (kind, names)
    assert cuda.library == BUILT_IN["torch:cuda-highest"].library


def test_programs_of_pytorch_have_a_gpu_too() -> None:
    assert [t.name for t in OF_TORCH] == [
        f"torch:{mode}:{device}" for mode in ("eager", "inductor") for device in ON_CUDA
    ]
    assert not {t.name for t in OF_TORCH} & set(torch_targets.DEFAULT)
    names = ("torch:eager", "torch:eager:cuda", "torch:inductor", "torch:inductor:cuda")
    targets = [torch_targets.BUILT_IN[name] for name in names]
    for kind, independent in (("aten.relu", 4), ("aten.matmul", 2), ("aten.conv2d", 2)):
        assert len({t.implementation_of(kind) for t in targets}) == independent, kind


@pytest.mark.parametrize("target", BUILT_IN.values(), ids=lambda target: target.name)
def test_only_a_mode_on_a_gpu_sees_it(target: Target) -> None:
    said = environment(target.backend, target.mode)
    hidden = said.get("CUDA_VISIBLE_DEVICES") in ("", "-1") or said.get("JAX_PLATFORMS") == "cpu"
    if target.backend in (*GPU_MODES, "numpy") and target.worker == "keras3":
        assert hidden is not on_gpu(target.backend, target.mode)


@pytest.mark.parametrize("target", ON_GPU, ids=lambda target: target.name)
def test_the_processor_plays_the_gpu_with_the_same_settings(target: Target) -> None:
    real = environment(target.backend, target.mode)
    played = environment(target.backend, target.mode, played=True)
    precise = {"NVIDIA_TF32_OVERRIDE", "JAX_DEFAULT_MATMUL_PRECISION"}
    assert {k: v for k, v in real.items() if k in precise} == {
        k: v for k, v in played.items() if k in precise
    }
    assert bool(precise & set(real)) is target.mode.endswith(HIGHEST)


def test_a_proof_with_a_gpu_keeps_the_others_off_it() -> None:
    assert environments("torch", "jax") == {n: {"KERAS_BACKEND": n} for n in ("torch", "jax")}
    found = environments("torch", "jax", "numpy", "torch:cuda", "jax:cuda-highest")
    assert found["torch"]["CUDA_VISIBLE_DEVICES"] == ""
    assert found["jax"]["JAX_PLATFORMS"] == found["numpy"]["JAX_PLATFORMS"] == "cpu"
    assert "CUDA_VISIBLE_DEVICES" not in found["torch:cuda"]
    assert found["jax:cuda-highest"]["JAX_PLATFORMS"] == ""  # any, the GPU first
    assert found["jax:cuda-highest"]["JAX_DEFAULT_MATMUL_PRECISION"] == "highest"


def drawn_absent(word: str) -> list[Target]:
    """Of each dialect one target on a GPU: what it says does not depend on its precision."""
    wings = ([*ON_GPU, BUILT_IN["openvino:gpu"]], OF_ONNX, OF_TORCH)
    plain = [[t for t in wing if not t.mode.endswith(HIGHEST)] for wing in wings]
    return [random.Random(word).choice(wing) for wing in plain]


def test_words_draw_every_target_on_a_gpu() -> None:
    drawn = {t.name for number in range(200) for t in drawn_absent(str(number))}
    assert len(drawn) >= 7
    assert not any(name.endswith(HIGHEST) for name in drawn)


@pytest.mark.frameworks
def test_where_there_is_no_gpu_a_target_says_so() -> None:
    for row in health(HealthJob(tuple(drawn_absent(WORD)))):
        if row.state != "ok":  # a machine with a GPU runs them
            assert row.state == "not here", told(WORD, [row.name])
            maker = "Intel" if row.name.startswith("openvino") else "NVIDIA"
            assert f"needs an {maker} GPU" in row.remedy
            assert row.name.split(":")[0] in row.remedy


@pytest.mark.frameworks
def test_the_same_code_of_runtimes_on_a_gpu_that_is_played(tmp_path: Path) -> None:
    targets = (onnx_targets.BUILT_IN["onnxruntime"], *(played(t.name) for t in OF_ONNX))
    path = saved(convolution_net(), tmp_path)
    with LocalPool(targets) as pool:
        found = check_in(pool, Job(path, targets, count=4))
    assert found.verdict == "consistent", [f.title for f in found.findings]
    said = {name: hello.reply.precision for name, hello in found.hellos.items()}
    assert said["onnxruntime"] == {}
    assert said["onnxruntime:cuda"] == {"device": "cuda", "products": "tf32"}
    assert said["onnxruntime:cuda-highest"] == {"device": "cuda"}
    assert said["openvino:onnx:gpu"] == {"inference": "f32", "device": "gpu"}


@pytest.mark.frameworks
def test_the_same_code_of_programs_on_a_gpu_that_is_played(tmp_path: Path) -> None:
    from torch_programs import archive  # it imports torch, which the other tests do without

    names = ("torch:eager:cuda", "torch:eager:cuda-highest")
    targets = (torch_targets.BUILT_IN["torch:eager"], *map(played, names))
    with LocalPool(targets) as pool:
        found = check_in(pool, Job(archive("conv", tmp_path), targets, count=4))
    assert found.verdict == "consistent", [f.title for f in found.findings]
    said = [hello.reply.precision for hello in found.hellos.values()]
    assert said == [{}, {"device": "cuda", "products": "tf32"}, {"device": "cuda"}]


@pytest.mark.frameworks
def test_a_view_holds_where_the_gpu_gives_tensors_other_strides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    from outvote.dialects.torch_export.workers.shared.gpu import OnGpu

    monkeypatch.setenv("OUTVOTE_GPU", "cpu")
    x = torch.arange(24.0).reshape(4, 3, 2).permute(2, 1, 0)
    exported = torch.fx.symbolic_trace(lambda x: (torch.ops.aten.view.default(x, [2, 12]),))
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        exported(x)
    (found,) = OnGpu("cuda", None).load(exported, (x,))(x)
    assert torch.equal(found, x.reshape(2, 12))


@pytest.mark.frameworks
def test_a_device_is_told_where_a_program_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from outvote.dialects.torch_export.workers.shared.gpu import OnGpu

    monkeypatch.setenv("OUTVOTE_GPU", "cpu")
    aten, elsewhere = torch.ops.aten, torch.device("meta")
    made = torch.fx.symbolic_trace(
        lambda x: (
            aten.to.device(x, elsewhere, torch.float64, False, False),
            aten.zeros_like.default(x, device=elsewhere),
        )
    )
    x = torch.ones(2)
    found = OnGpu("cuda", None).load(made, (x,))(x)
    assert [str(part.device) for part in found] == ["cpu", "cpu"]
    assert torch.equal(found[0], x.double())


LOST = """
import torch
from outvote.dialects.torch_export.workers.shared import gpu

def gone(*args):
    raise RuntimeError("CUDA error: device-side assert triggered")

def relu(x):
    if x.sum() > 0:
        gpu.synchronize = gone
    return gone() if gpu.synchronize is gone else x.clamp(min=0)

held = torch.library.Library("aten", "IMPL")
held.impl("relu", relu, "CPU")
"""


@pytest.mark.frameworks
def test_a_process_that_has_lost_the_gpu_is_replaced(tmp_path: Path) -> None:
    """What runs next is not blamed for what an assertion in a kernel has left behind."""
    setup = tmp_path / "lost.py"
    setup.write_text(LOST)
    target = replace(played("torch:eager:cuda"), setup=setup)
    model, (x,), _ = torch_targets.probe()
    with LocalPool([target]) as pool:
        runs = [
            pool.ask(target.name, RunModel(model=model, inputs=(pool.blobs.put(given),), batch=1))
            for given in (x + 5, x - 3)
        ]
    assert runs[0].outcome is Outcome.CRASH
    assert "the GPU is lost to this process" in runs[0].detail + runs[0].message
    assert runs[1].ok, runs[1].message
    np.testing.assert_array_equal(runs[1].reply.outputs.arrays[0], np.maximum(x - 3, 0))


MODEL = """
x = keras.Input((6, 6, 2))
y = layers.Conv2D(3, 3, name="conv")(x)
model = keras.Model(x, layers.Dense(3, name="dense")(layers.Flatten()(y)))
"""


PLAYED = {
    "torch:cuda": ("cuda", "tf32"),
    "jax:cuda": ("gpu", "tf32"),
    "jax:cuda-highest": ("gpu", None),
    "openvino:gpu": ("gpu", None),
}


@pytest.mark.frameworks
def test_the_same_code_on_a_gpu_that_is_played(keras_file: Callable[..., Path]) -> None:
    """On two of them, drawn by the commit."""
    names = random.Random(WORD).sample(sorted(PLAYED), 2)
    targets = (BUILT_IN["torch"], *map(played, names))
    with LocalPool(targets) as pool:
        found = check_in(pool, Job(keras_file(MODEL), targets, count=4))
    assert found.verdict == "consistent", told(WORD, [f.title for f in found.findings])
    precision = {name: hello.reply.precision for name, hello in found.hellos.items()}
    said = {name: (p.get("device"), p.get("products")) for name, p in precision.items()}
    assert said == {"torch": (None, None), **{n: PLAYED[n] for n in names}}, told(WORD, names)
