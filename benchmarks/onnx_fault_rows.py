"""The planted faults of onnx_faults.py, as data: where each is, and what must be said.

The plants are in onnx_fault_plants.py, under the same names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from onnx_fault_graphs import (
    graph,
    image_net,
    recurrent_net,
    sequence_net,
    step,
    vector_net,
    weight,
    whole,
    zoo_net,
)

PLANTS = Path(__file__).with_name("onnx_fault_plants.py")
_REFERENCE, _ORT, _ALL, _CV = "onnx-reference", "onnxruntime", "onnxruntime:all", "opencv"
_VINO, _FREE = "openvino:onnx", "openvino:onnx:dynamic"


@dataclass(frozen=True)
class OnnxFault:
    """One planted fault: the target that has it, the nodes that show it, and in what model."""

    name: str
    family: str
    target: str
    nodes: tuple[str, ...]  # of the smallest graph that shows it; the last is the one to be named
    graph: Callable[[], Any]
    kind: str = "inconsistency"
    nan: bool = False  # whether inputs hold NaN


def _image(*guilty: Any, **more: Any) -> Callable[[], Any]:
    return partial(image_net, *guilty, **more)


def _sequence(*guilty: Any, **more: Any) -> Callable[[], Any]:
    return partial(sequence_net, *guilty, **more)


def _vector(*guilty: Any) -> Callable[[], Any]:
    return partial(vector_net, *guilty)


_KERNEL = weight(4, 4, 3, 3, seed=7)
_POOL = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
_NUMBERS = (step("Mul", np.float32(4)), step("Floor"))  # few different ones, so that some are equal
FAULTS = (
    # Padding and places.
    OnnxFault("conv_pads_at_the_wrong_end", "padding", _REFERENCE, ("Conv",),
              _image(step("Conv", _KERNEL, pads=[0, 0, 2, 2]))),
    OnnxFault("conv_same_lower_for_upper", "padding", _ORT, ("Conv",),
              _image(step("Conv", weight(4, 4, 2, 2), auto_pad="SAME_UPPER"))),
    OnnxFault("average_pool_counts_padding", "padding", _ORT, ("AveragePool",),
              _image(step("AveragePool", **_POOL, count_include_pad=0))),
    OnnxFault("pad_edge_for_reflect", "padding", _VINO, ("Pad",),
              _image(step("Pad", whole(0, 0, 1, 1, 0, 0, 1, 1), mode="reflect"))),
    OnnxFault("transposed_conv_output_padding", "padding", _ORT, ("ConvTranspose",),
              _image(step("ConvTranspose", weight(4, 2, 3, 3), strides=[2, 2],
                          output_padding=[1, 1])), "shape"),
    OnnxFault("max_pool_dilation_ignored", "padding", _VINO, ("MaxPool",),
              _image(step("MaxPool", kernel_shape=[3, 3], dilations=[2, 2])), "shape"),
    # Attributes that are ignored or read wrongly.
    OnnxFault("conv_dilation_ignored", "attribute", _CV, ("Conv",),
              _image(step("Conv", _KERNEL, pads=[2, 2, 2, 2], dilations=[2, 2]))),
    OnnxFault("batchnorm_epsilon", "attribute", _CV, ("BatchNormalization",), _image()),
    OnnxFault("layernorm_epsilon", "attribute", _REFERENCE, ("LayerNormalization",), _sequence()),
    OnnxFault("gemm_alpha_ignored", "attribute", _CV, ("Gemm",),
              _vector(step("Gemm", weight(6, 6), weight(6), alpha=0.5))),
    OnnxFault("gemm_beta_ignored", "attribute", _ORT, ("Gemm",),
              _vector(step("Gemm", weight(6, 6), weight(6), beta=0.5))),
    OnnxFault("elu_alpha_ignored", "attribute", _VINO, ("Elu",), _image(step("Elu", alpha=0.5))),
    OnnxFault("leaky_slope_by_default", "attribute", _CV, ("LeakyRelu",),
              _image(step("LeakyRelu", alpha=0.2))),
    OnnxFault("hard_sigmoid_slope", "attribute", _ORT, ("HardSigmoid",),
              _image(step("HardSigmoid", alpha=0.25))),
    OnnxFault("resize_asymmetric", "attribute", _VINO, ("Resize",),
              _image(step("Resize", None, np.array([1, 1, 2, 2], np.float32), mode="linear",
                          coordinate_transformation_mode="half_pixel"))),
    OnnxFault("depth_to_space_order", "attribute", _CV, ("DepthToSpace",),
              _image(step("Conv", weight(8, 4, 1, 1)),
                     step("DepthToSpace", blocksize=2, mode="CRD"))),
    OnnxFault("lrn_beta", "attribute", _VINO, ("LRN",),
              _image(step("LRN", size=3, alpha=0.9, beta=0.75))),
    OnnxFault("gelu_by_tanh", "attribute", _ORT, ("Gelu",),
              _sequence(step("Gelu", approximate="none"), opset=20)),
    OnnxFault("lstm_reads_forward", "attribute", _ORT, ("LSTM",),
              partial(recurrent_net, "LSTM", 4, direction="reverse")),
    OnnxFault("gru_reset_before", "attribute", _VINO, ("GRU",),
              partial(recurrent_net, "GRU", 3, linear_before_reset=1)),
    OnnxFault("cumsum_not_reversed", "attribute", _ORT, ("CumSum",),
              _sequence(step("CumSum", np.array(1, np.int64), reverse=1))),
    OnnxFault("top_k_always_largest", "attribute", _ORT, ("TopK",),
              _sequence(step("TopK", whole(3), largest=0))),
    # Axes, broadcasting, order.
    OnnxFault("softmax_axis_ignored", "axis", _VINO, ("Softmax",), _image(step("Softmax", axis=1))),
    OnnxFault("log_softmax_axis_off_by_one", "axis", _REFERENCE, ("LogSoftmax",),
              _sequence(step("LogSoftmax", axis=1))),
    OnnxFault("add_broadcasts_along_rows", "broadcast", _REFERENCE, ("Add",),
              _image(step("Add", weight(8, seed=9)))),
    OnnxFault("prelu_of_one_slope", "broadcast", _REFERENCE, ("PRelu",),
              _image(step("PRelu", np.abs(weight(4, 1, 1))))),
    OnnxFault("conv_group_order", "axis", _REFERENCE, ("Conv",),
              _image(step("Conv", weight(4, 2, 3, 3), group=2, pads=[1, 1, 1, 1]))),
    # Off by one, sizes, ties.
    OnnxFault("global_pool_off_by_one", "off by one", _REFERENCE, ("GlobalAveragePool",),
              _image(step("GlobalAveragePool"))),
    OnnxFault("gather_from_behind", "off by one", _REFERENCE, ("Gather",),
              _sequence(step("Gather", whole(-1, 0, -2), axis=2))),
    OnnxFault("argmax_takes_the_first", "off by one", _ORT, ("ArgMax",),
              _sequence(*_NUMBERS, step("ArgMax", axis=1, select_last_index=1),
                        step("Cast", to=1))),
    OnnxFault("matmul_drops_tail_above_64", "size", _REFERENCE, ("MatMul",),
              _vector(step("MatMul", weight(6, 80)), step("MatMul", weight(80, 6)))),
    OnnxFault("clip_has_no_upper_end", "off by one", _REFERENCE, ("Clip",),
              _image(step("Clip", np.float32(-0.2), np.float32(0.2)))),
    # Rounding and types.
    OnnxFault("round_half_away", "rounding", _REFERENCE, ("Round",),
              _image(*_NUMBERS, step("Mul", np.float32(0.5)), step("Round"))),
    OnnxFault("cast_rounds", "rounding", _REFERENCE, ("Cast",),
              _image(step("Mul", np.float32(4)), step("Cast", to=6), step("Cast", to=1))),
    OnnxFault("mod_sign_of_dividend", "rounding", _REFERENCE, ("Mod",),
              _image(*_NUMBERS, step("Cast", to=6), step("Mod", np.array(3, np.int32)),
                     step("Cast", to=1))),
    OnnxFault("erf_in_half", "rounding", _REFERENCE, ("Erf",), _image(step("Erf"))),
    # NaN and infinity.
    OnnxFault("sigmoid_of_nan_is_zero", "nan", _REFERENCE, ("Sigmoid",),
              partial(graph, (4, 5), [step("Sin"), step("Sigmoid"), step("Flatten")]),
              "nan", nan=True),
    OnnxFault("sum_skips_nan", "nan", _REFERENCE, ("ReduceSum",),
              partial(graph, (4, 5), [step("Sin"), step("ReduceSum", whole(2)), step("Flatten")]),
              "nan", nan=True),
    OnnxFault("softmax_overflows", "nan", _REFERENCE, ("Softmax",),
              _sequence(step("Mul", np.float32(200)), step("Softmax", axis=-1)), "nan"),
    # Only several nodes at once, or free sizes.
    OnnxFault("fused_conv_relu_leaks", "fusion", _ALL, ("Conv", "Relu"),
              _image(step("Conv", _KERNEL), step("Relu"))),
    OnnxFault("fused_matmul_loses_bias", "fusion", _VINO, ("MatMul", "Add"), _sequence()),
    OnnxFault("fused_conv_norm_epsilon", "fusion", _CV, ("Conv", "BatchNormalization"), _image()),
    OnnxFault("free_average_pool", "free sizes", _FREE, ("AveragePool",),
              _image(step("AveragePool", **_POOL, count_include_pad=0))),
    OnnxFault("free_elu", "free sizes", _ORT, ("Elu",), _image(step("Elu", alpha=0.5))),
    # On a trained model of the zoo, as PyTorch exports it.
    OnnxFault("zoo_conv_loses_a_channel", "zoo", _REFERENCE, ("Conv",), partial(zoo_net, "lenet5")),
    OnnxFault("zoo_matmul_drops_tail", "zoo", _REFERENCE, ("MatMul",), partial(zoo_net, "lenet5")),
    # No result at all.
    OnnxFault("segfault_on_hard_swish", "crash", _CV, ("HardSwish",), _image(step("HardSwish")),
              "crash"),
    OnnxFault("hang_on_softsign", "hang", _REFERENCE, ("Softsign",), _image(step("Softsign")),
              "hang"),
    OnnxFault("tanh_raises", "crash", _REFERENCE, ("Tanh",), _image(step("Tanh")), "crash"),
)  # fmt: skip
