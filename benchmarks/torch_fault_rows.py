"""The planted faults of torch_faults.py, as data: where each is, and what must be said.

The plants are in torch_fault_plants.py, under the same names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

PLANTS = Path(__file__).with_name("torch_fault_plants.py")
_DECOMPOSED, _INDUCTOR = "torch:decomposed", "torch:inductor"
_ONNX, _VINO, _EAGER = "onnxruntime:torch", "openvino:torch", "torch:eager"
_INT8, _FP16 = "twin:torch:int8", "twin:torch:fp16"


class Net(nn.Module):
    """Something before the operator at fault, and something behind it."""

    def __init__(self, stem: nn.Module, guilty: nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.stem = stem
        self.guilty = guilty
        self.shape = shape
        self.head: nn.Module = nn.Identity()
        with torch.no_grad():
            width = self(torch.zeros(1, *shape)).shape[1]
        self.head = nn.Linear(width, 5)

    def forward(self, x: Any) -> Any:
        h = torch.sin(self.stem(x))
        h = self.guilty(h)
        return self.head(h.flatten(1))


class AddCMul(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.addcmul(x, x, x, value=0.5)


class Lerp(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.lerp(x, x * x, 0.25)


class Where(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.where(x > 0, x, x * 0.5)


class Cat(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.cat([x, x * 2], 1)


class Largest(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.amax(1, keepdim=True)


class Mean(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.mean((2, 3))


class Clamp(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.clamp(x, -0.5, 0.5)


class Pad(nn.Module):
    def forward(self, x: Any) -> Any:
        return F.pad(x, (1, 1, 1, 1), mode="reflect")


class Upsample(nn.Module):
    def forward(self, x: Any) -> Any:
        return F.interpolate(x, size=(9, 9), mode="bilinear", align_corners=True)


class CumSum(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.cumsum(x, 1)


class Flip(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.flip(x, [1])


class Roll(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.roll(x, 1, 1)


def guilty_line(net: Net) -> int:
    """The line of this file that calls the operator at fault, or PyTorch's module of it."""
    kind = type(net.guilty)
    ours = kind.__module__ == __name__
    called, lines = (kind.forward, 1) if ours else (Net.forward, 2)
    return int(called.__code__.co_firstlineno) + lines


def image(make: Callable[[], nn.Module]) -> Net:
    return Net(nn.Conv2d(3, 4, 3), make(), (3, 8, 8))


def vector(make: Callable[[], nn.Module]) -> Net:
    return Net(nn.Linear(6, 8), make(), (6,))


@dataclass(frozen=True)
class TorchFault:
    """One planted fault: the target that has it, the operator that shows it, and in what model."""

    name: str
    family: str
    target: str
    operator: str  # of the exported program
    net: Callable[[], Net]
    kind: str = "inconsistency"

    def case(self) -> tuple[Net, np.ndarray]:
        """The network, and four instances of what it reads."""
        torch.manual_seed(3)
        net = self.net()
        x = np.random.default_rng(0).normal(size=(4, *net.shape)).astype(np.float32)
        return net.eval(), x


def _image(make: Callable[[], nn.Module]) -> Callable[[], Net]:
    return partial(image, make)


def _vector(make: Callable[[], nn.Module]) -> Callable[[], Net]:
    return partial(vector, make)


FAULTS: tuple[TorchFault, ...] = (
    # PyTorch's decompositions.
    TorchFault("silu_too_steep", "decomposition", _DECOMPOSED, "aten.silu", _image(nn.SiLU)),
    TorchFault(
        "hardswish_shifted", "decomposition", _DECOMPOSED, "aten.hardswish", _image(nn.Hardswish)
    ),
    TorchFault(
        "softplus_beta_ignored",
        "decomposition",
        _DECOMPOSED,
        "aten.softplus",
        _image(lambda: nn.Softplus(beta=2.0)),
    ),
    TorchFault("mish_without_softplus", "decomposition", _DECOMPOSED, "aten.mish", _image(nn.Mish)),
    TorchFault(
        "glu_halves_swapped", "decomposition", _DECOMPOSED, "aten.glu", _image(lambda: nn.GLU(1))
    ),
    TorchFault(
        "addcmul_value_ignored", "decomposition", _DECOMPOSED, "aten.addcmul", _vector(AddCMul)
    ),
    TorchFault(
        "lerp_from_the_other_end", "decomposition", _DECOMPOSED, "aten.lerp.Scalar", _vector(Lerp)
    ),
    TorchFault(
        "softshrink_keeps_the_step",
        "decomposition",
        _DECOMPOSED,
        "aten.softshrink",
        _image(lambda: nn.Softshrink(0.3)),
    ),
    TorchFault("roll_the_other_way", "decomposition", _DECOMPOSED, "aten.roll", _vector(Roll)),
    # Inductor's lowerings.
    TorchFault("relu_leaks", "lowering", _INDUCTOR, "aten.relu", _image(nn.ReLU)),
    TorchFault("sigmoid_too_steep", "lowering", _INDUCTOR, "aten.sigmoid", _image(nn.Sigmoid)),
    TorchFault("amax_is_amin", "lowering", _INDUCTOR, "aten.amax", _vector(Largest)),
    TorchFault("where_swapped", "lowering", _INDUCTOR, "aten.where.self", _vector(Where)),
    TorchFault("cat_in_reverse", "lowering", _INDUCTOR, "aten.cat", _vector(Cat)),
    TorchFault("mean_of_one_less", "lowering", _INDUCTOR, "aten.mean.dim", _image(Mean)),
    # PyTorch's exporter to ONNX.
    TorchFault(
        "softmax_axis_last", "exporter", _ONNX, "aten.softmax.int", _image(lambda: nn.Softmax(1))
    ),
    TorchFault(
        "layer_norm_epsilon", "exporter", _ONNX, "aten.layer_norm", _vector(lambda: nn.LayerNorm(8))
    ),
    TorchFault(
        "leaky_slope_by_default",
        "exporter",
        _ONNX,
        "aten.leaky_relu",
        _image(lambda: nn.LeakyReLU(0.2)),
    ),
    TorchFault("elu_alpha_by_default", "exporter", _ONNX, "aten.elu", _image(lambda: nn.ELU(0.5))),
    TorchFault("concat_in_reverse", "exporter", _ONNX, "aten.cat", _vector(Cat)),
    TorchFault(
        "average_pool_counts_padding",
        "exporter",
        _ONNX,
        "aten.avg_pool2d",
        _image(lambda: nn.AvgPool2d(3, 1, 1, count_include_pad=False)),
    ),
    TorchFault("cumsum_in_reverse", "exporter", _ONNX, "aten.cumsum", _vector(CumSum)),
    # OpenVINO's converter of programs.
    TorchFault("gelu_is_relu", "converter", _VINO, "aten.gelu", _image(nn.GELU)),
    TorchFault(
        "hardtanh_without_limits",
        "converter",
        _VINO,
        "aten.hardtanh",
        _image(lambda: nn.Hardtanh(-0.3, 0.3)),
    ),
    TorchFault("clamp_has_no_upper_end", "converter", _VINO, "aten.clamp", _vector(Clamp)),
    TorchFault(
        "group_norm_epsilon",
        "converter",
        _VINO,
        "aten.group_norm",
        _image(lambda: nn.GroupNorm(2, 4)),
    ),
    TorchFault(
        "upsampled_corners_not_aligned",
        "converter",
        _VINO,
        "aten.upsample_bilinear2d.vec",
        _image(Upsample),
    ),
    TorchFault("flipped_along_the_batch", "converter", _VINO, "aten.flip", _vector(Flip)),
    # Quantisers and casts.
    TorchFault(
        "int8_scale_too_large", "quantiser", _INT8, "aten.linear", _vector(lambda: nn.Linear(8, 9))
    ),
    TorchFault(
        "int8_bias_forgotten", "quantiser", _INT8, "aten.linear", _vector(lambda: nn.Linear(8, 9))
    ),
    TorchFault(
        "int8_rows_swapped", "quantiser", _INT8, "aten.linear", _vector(lambda: nn.Linear(8, 9))
    ),
    TorchFault(
        "half_loses_a_row", "quantiser", _FP16, "aten.linear", _vector(lambda: nn.Linear(8, 9))
    ),
    # ATen's kernels, and no result at all.
    TorchFault(
        "softmax_sums_to_more", "kernel", _EAGER, "aten.softmax.int", _image(lambda: nn.Softmax(1))
    ),
    TorchFault("converter_refuses_padding", "crash", _VINO, "aten.pad", _image(Pad), "crash"),
)
