"""The faults of torch_faults.py, planted in PyTorch and in what converts its programs.

A setup script; `FAULT` names the one. A decomposition, a lowering of Inductor or a kernel of ATen
gives way to another; the exporter to ONNX and OpenVINO's converter read an argument wrongly: what
comes out of the one, and goes into the other, is changed; a quantiser writes other weights.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
HELD: list[Any] = []  # libraries live as long as somebody holds them
ROWS = 9  # of the weights that a quantiser spoils


# Decompositions.


def decomposing(operator: Any, function: Callable[..., Any]) -> Callable[[], None]:
    def plant() -> None:
        torch._decomp.global_decomposition_table["post_autograd"][operator] = function

    return plant


def softplus_of_one(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return torch.log1p(torch.exp(x))


def swapped_glu(x: Any, dim: int = -1) -> Any:
    a, b = torch.chunk(x, 2, dim)
    return torch.sigmoid(a) * b


def stepped_softshrink(x: Any, lambd: float = 0.5) -> Any:
    return torch.where(x.abs() > lambd, x, x * 0)


def rolled_back(x: Any, shifts: Any, dims: Any = ()) -> Any:
    (shift,), (dim,) = shifts, dims
    size = x.shape[dim]
    return torch.cat([x.narrow(dim, shift, size - shift), x.narrow(dim, 0, shift)], dim)


# Lowerings.


def lowering(operator: Any, made: Callable[[Any, Any], Any]) -> Callable[[], None]:
    """`made` is given the table of lowerings and the one that is replaced."""

    def plant() -> None:
        from torch._inductor import lowering

        lowering.lowerings[operator] = made(lowering.lowerings, lowering.lowerings[operator])

    return plant


def leaky(table: Any, plain: Any) -> Any:
    return lambda x: table[aten.maximum.default](x, table[aten.mul.Tensor](x, 0.1))


def steep(table: Any, plain: Any) -> Any:
    return lambda x: plain(table[aten.mul.Tensor](x, 1.2))


def reversed_cat(table: Any, plain: Any) -> Any:
    return lambda tensors, dim=0: plain(list(reversed(tensors)), dim)


def larger_mean(table: Any, plain: Any) -> Any:
    return lambda *args, **more: table[aten.mul.Tensor](plain(*args, **more), 36 / 35)


# The exporter to ONNX.


def exported(kind: str, change: Callable[[Any], None]) -> Callable[[], None]:
    """Changes every node of a kind in what comes out."""

    def plant() -> None:
        export = torch.onnx.export

        def changed(*args: Any, **more: Any) -> Any:
            program = export(*args, **more)
            for node in program.model.graph:
                if node.op_type == kind:
                    change(node)
            return program

        torch.onnx.export = changed

    return plant


def writing(name: str, value: float) -> Callable[[Any], None]:
    def change(node: Any) -> None:
        import onnx_ir as ir

        made = ir.AttrInt64 if isinstance(value, int) else ir.AttrFloat32
        node.attributes[name] = made(name, value)

    return change


def reverse_inputs(node: Any) -> None:
    for place, value in enumerate(reversed(list(node.inputs))):
        node.replace_input_with(place, value)


# OpenVINO's converter.


def converted(operator: Any, change: Callable[[Any], None]) -> Callable[[], None]:
    """Changes every call of an operator in what goes in."""

    def plant() -> None:
        import openvino as ov

        convert = ov.convert_model

        def changed(program: Any, *args: Any, **more: Any) -> Any:
            for node in program.graph.nodes:
                if node.target is operator:
                    change(node)
            return convert(program, *args, **more)

        ov.convert_model = changed

    return plant


def putting(place: int, value: Any) -> Callable[[Any], None]:
    def change(node: Any) -> None:
        given = [*node.args, *[None] * (place + 1 - len(node.args))]
        node.args = (*given[:place], value, *given[place + 1 :])

    return change


def as_relu(node: Any) -> None:
    node.target, node.kwargs = aten.relu.default, {}


def refuse(node: Any) -> None:
    raise RuntimeError("the index of the padding is out of range")


# Quantisers.


def quantised(change: Callable[[Any], None]) -> Callable[[], None]:
    """Changes the module that is about to be quantised."""

    def plant() -> None:
        tool = torch.ao.nn.quantized.dynamic.Linear
        made = tool.from_float.__func__

        def from_float(cls: Any, module: Any, *args: Any, **more: Any) -> Any:
            if len(module.weight) == ROWS:
                change(module)
            return made(cls, module, *args, **more)

        tool.from_float = classmethod(from_float)

    return plant


def scaled(module: Any) -> None:
    module.weight.data = module.weight.data * 1.2


def without_bias(module: Any) -> None:
    module.bias.data = module.bias.data * 0


def swapped_rows(module: Any) -> None:
    module.weight.data = module.weight.data[[1, 0, *range(2, ROWS)]]


def half_loses_a_row() -> None:
    move = torch.nn.Module.to

    def to(module: Any, *args: Any, **more: Any) -> Any:
        for buffer in module.buffers():
            if buffer.ndim == 2 and len(buffer) == ROWS:
                buffer[buffer.norm(dim=1).argmax()] = 0
        return move(module, *args, **more)

    torch.nn.Module.to = to


# Kernels.


def softmax_sums_to_more() -> None:
    library = torch.library.Library("aten", "IMPL")
    HELD.append(library)

    def softmax(x: Any, dim: int, half_to_float: bool) -> Any:
        raised = torch.exp(x - x.amax(dim, keepdim=True))
        return raised / raised.sum(dim, keepdim=True) * 1.01

    library.impl("_softmax", softmax, "CPU")


PLANTED: dict[str, Callable[[], None]] = {
    "silu_too_steep": decomposing(aten.silu.default, lambda x: x * torch.sigmoid(x * 1.05)),
    "hardswish_shifted": decomposing(
        aten.hardswish.default, lambda x: x * torch.clamp(x + 2.9, 0, 6) / 6
    ),
    "softplus_beta_ignored": decomposing(aten.softplus.default, softplus_of_one),
    "mish_without_softplus": decomposing(aten.mish.default, lambda x: x * torch.tanh(x.exp())),
    "glu_halves_swapped": decomposing(aten.glu.default, swapped_glu),
    "addcmul_value_ignored": decomposing(aten.addcmul.default, lambda x, a, b, value=1: x + a * b),
    "lerp_from_the_other_end": decomposing(aten.lerp.Scalar, lambda a, b, w: b + w * (a - b)),
    "softshrink_keeps_the_step": decomposing(aten.softshrink.default, stepped_softshrink),
    "roll_the_other_way": decomposing(aten.roll.default, rolled_back),
    "relu_leaks": lowering(aten.relu.default, leaky),
    "sigmoid_too_steep": lowering(aten.sigmoid.default, steep),
    "amax_is_amin": lowering(aten.amax.default, lambda table, plain: table[aten.amin.default]),
    "where_swapped": lowering(
        aten.where.self, lambda table, plain: lambda condition, a, b: plain(condition, b, a)
    ),
    "cat_in_reverse": lowering(aten.cat.default, reversed_cat),
    "mean_of_one_less": lowering(aten.mean.dim, larger_mean),
    "softmax_axis_last": exported("Softmax", writing("axis", -1)),
    "layer_norm_epsilon": exported("LayerNormalization", writing("epsilon", 0.05)),
    "leaky_slope_by_default": exported("LeakyRelu", writing("alpha", 0.01)),
    "elu_alpha_by_default": exported("Elu", writing("alpha", 1.0)),
    "concat_in_reverse": exported("Concat", reverse_inputs),
    "average_pool_counts_padding": exported("AveragePool", writing("count_include_pad", 1)),
    "cumsum_in_reverse": exported("CumSum", writing("reverse", 1)),
    "gelu_is_relu": converted(aten.gelu.default, as_relu),
    "hardtanh_without_limits": converted(aten.hardtanh.default, putting(1, -1.0)),
    "clamp_has_no_upper_end": converted(aten.clamp.default, putting(2, 10.0)),
    "group_norm_epsilon": converted(aten.group_norm.default, putting(4, 0.05)),
    "upsampled_corners_not_aligned": converted(aten.upsample_bilinear2d.vec, putting(2, False)),
    "flipped_along_the_batch": converted(aten.flip.default, putting(1, [0])),
    "int8_scale_too_large": quantised(scaled),
    "int8_bias_forgotten": quantised(without_bias),
    "int8_rows_swapped": quantised(swapped_rows),
    "half_loses_a_row": half_loses_a_row,
    "softmax_sums_to_more": softmax_sums_to_more,
    "converter_refuses_padding": converted(aten.pad.default, refuse),
}

if __name__ == "__main__":
    PLANTED[os.environ["FAULT"]]()
