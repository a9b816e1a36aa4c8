"""The faults of onnx_faults.py, planted in runtimes: a setup script; `FAULT` names the one.

Three ways to be wrong. A rewrite changes the graph that a runtime is given, as a front end or an
optimiser does that reads an attribute wrongly, or fuses nodes wrongly. A kernel changes what the
reference implementation computes for a node. The others die, hang or raise.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper

Node = Any
Rewrite = Callable[[Any], None]  # of a graph
Kernel = Callable[[list[Any], list[Any], dict[str, Any]], list[Any]]  # inputs, outputs, attributes


def attributes_of(node: Node) -> dict[str, Any]:
    return {item.name: helper.get_attribute_value(item) for item in node.attribute}


def put(node: Node, name: str, value: Any) -> None:
    kept = [item for item in node.attribute if item.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])


def setting(kind: str, name: str, value: Any) -> Rewrite:
    """Reads another value, wherever an operator says one."""

    def rewrite(graph: Any) -> None:
        for node in graph.node:
            if node.op_type == kind and name in attributes_of(node):
                put(node, name, value)

    return rewrite


def swapped_pads(graph: Any) -> None:
    """Padding at the wrong ends."""
    for node in graph.node:
        pads = attributes_of(node).get("pads")
        if node.op_type == "Conv" and pads:
            half = len(pads) // 2
            put(node, "pads", [*pads[half:], *pads[:half]])


def undilated(graph: Any) -> None:
    """No dilation, and padding that makes up for it."""
    for node in graph.node:
        told = attributes_of(node)
        if node.op_type == "Conv" and max(told.get("dilations", [1])) > 1:
            put(node, "pads", [n // told["dilations"][0] for n in told["pads"]])
            put(node, "dilations", [1] * len(told["dilations"]))


def same_upper_is_lower(graph: Any) -> None:
    for node in graph.node:
        if attributes_of(node).get("auto_pad") == b"SAME_UPPER":
            put(node, "auto_pad", "SAME_LOWER")


def fused(first: str, second: str, change: Callable[[Any, Any], None]) -> Rewrite:
    """Two nodes, where nobody else reads what passes between them."""

    def rewrite(graph: Any) -> None:
        shown = {value.name for value in graph.output}
        made = {node.output[0]: node for node in graph.node if node.op_type == first}
        for node in graph.node:
            before = next((made[name] for name in node.input if name in made), None)
            if node.op_type == second and before and before.output[0] not in shown:
                change(before, node)

    return rewrite


def leaks(before: Any, node: Any) -> None:
    node.op_type = "LeakyRelu"
    put(node, "alpha", 0.1)


def dropped(before: Any, node: Any) -> None:
    node.op_type = "Identity"
    node.input[:] = [before.output[0]]


def coarse(before: Any, node: Any) -> None:
    put(node, "epsilon", 0.05)


def where_free(rewrite: Rewrite) -> Rewrite:
    """Only where a dimension has no size."""

    def free(graph: Any) -> None:
        dims = [d for value in graph.input for d in value.type.tensor_type.shape.dim]
        if any(not dim.HasField("dim_value") for dim in dims):
            rewrite(graph)

    return free


def meeting(kind: str, deed: Callable[[], None]) -> Rewrite:
    def rewrite(graph: Any) -> None:
        if any(node.op_type == kind for node in graph.node):
            deed()

    return rewrite


def die() -> None:
    ctypes.string_at(0)


def hang() -> None:
    time.sleep(3600)


REWRITES: dict[str, Rewrite] = {
    "conv_pads_at_the_wrong_end": swapped_pads,
    "conv_dilation_ignored": undilated,
    "conv_same_lower_for_upper": same_upper_is_lower,
    "transposed_conv_output_padding": setting("ConvTranspose", "output_padding", [0, 0]),
    "max_pool_dilation_ignored": setting("MaxPool", "dilations", [1, 1]),
    "average_pool_counts_padding": setting("AveragePool", "count_include_pad", 1),
    "softmax_axis_ignored": setting("Softmax", "axis", -1),
    "log_softmax_axis_off_by_one": setting("LogSoftmax", "axis", 2),
    "batchnorm_epsilon": setting("BatchNormalization", "epsilon", 0.01),
    "layernorm_epsilon": setting("LayerNormalization", "epsilon", 0.01),
    "gemm_alpha_ignored": setting("Gemm", "alpha", 1.0),
    "gemm_beta_ignored": setting("Gemm", "beta", 1.0),
    "elu_alpha_ignored": setting("Elu", "alpha", 1.0),
    "leaky_slope_by_default": setting("LeakyRelu", "alpha", 0.01),
    "hard_sigmoid_slope": setting("HardSigmoid", "alpha", 1 / 6),
    "pad_edge_for_reflect": setting("Pad", "mode", "edge"),
    "resize_asymmetric": setting("Resize", "coordinate_transformation_mode", "asymmetric"),
    "depth_to_space_order": setting("DepthToSpace", "mode", "DCR"),
    "lrn_beta": setting("LRN", "beta", 0.5),
    "gelu_by_tanh": setting("Gelu", "approximate", "tanh"),
    "lstm_reads_forward": setting("LSTM", "direction", "forward"),
    "gru_reset_before": setting("GRU", "linear_before_reset", 0),
    "cumsum_not_reversed": setting("CumSum", "reverse", 0),
    "top_k_always_largest": setting("TopK", "largest", 1),
    "argmax_takes_the_first": setting("ArgMax", "select_last_index", 0),
    "fused_conv_relu_leaks": fused("Conv", "Relu", leaks),
    "fused_matmul_loses_bias": fused("MatMul", "Add", dropped),
    "fused_conv_norm_epsilon": fused("Conv", "BatchNormalization", coarse),
    "free_average_pool": where_free(setting("AveragePool", "count_include_pad", 1)),
    "free_elu": where_free(setting("Elu", "alpha", 1.0)),
    "segfault_on_hard_swish": meeting("HardSwish", die),
    "hang_on_softsign": meeting("Softsign", hang),
}


def rolled_groups(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    return [np.roll(made[0], 1, axis=1)] if told.get("group", 1) > 1 else made


def last_row_lost(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    inner = tuple(range(2, read[0].ndim))
    return [read[0][:, :, :-1].mean(axis=inner, keepdims=True)]


def half_away(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    """Halves away from zero, which ONNX takes to the even number."""
    return [np.sign(read[0]) * np.floor(np.abs(read[0]) + 0.5)]


def last_channel_lost(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    return [np.concatenate([made[0][:, :-1], 0 * made[0][:, -1:]], axis=1)]


def nearest(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    """Rounds to whole numbers, which is to cut off what is behind the point."""
    return [np.rint(read[0])] if made[0].dtype.kind in "iu" else made


def fmod(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    return [np.fmod(*read)]


def along_rows(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    """A vector is spread along the wrong axis of a square."""
    a, b = read
    square = a.ndim > 1 and a.shape[-1] == a.shape[-2] and b.shape == a.shape[-1:]
    return [a + b[:, None]] if square else made


def one_slope(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    x, slope = read
    return [np.where(x > 0, x, x * slope.reshape(-1)[0])]


def nan_is_zero(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    return [np.nan_to_num(made[0], nan=0.0, posinf=np.inf, neginf=-np.inf)]


def nan_is_skipped(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    return [np.nansum(read[0], axis=tuple(read[1]), keepdims=bool(told.get("keepdims", 1)))]


def tail_lost(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    a, b = read
    return [a[..., :64] @ b[..., :64, :]] if a.shape[-1] > 64 else made


def not_from_behind(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    return [np.take(read[0], np.maximum(read[1], 0), axis=told.get("axis", 0))]


def in_half(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    return [made[0].astype(np.float16).astype(made[0].dtype)]


def raw_exponentials(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    with np.errstate(all="ignore"):
        raised = np.exp(read[0] * np.float32(1))
        return [raised / raised.sum(axis=told.get("axis", -1), keepdims=True)]


def no_upper_end(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    return [np.maximum(read[0], read[1])]


def raises(read: list[Any], made: list[Any], told: dict[str, Any]) -> list[Any]:
    raise RuntimeError("this kernel is broken")


KERNELS: dict[str, tuple[str, Kernel]] = {
    "conv_group_order": ("Conv", rolled_groups),
    "global_pool_off_by_one": ("GlobalAveragePool", last_row_lost),
    "round_half_away": ("Round", half_away),
    "cast_rounds": ("Cast", nearest),
    "zoo_conv_loses_a_channel": ("Conv", last_channel_lost),
    "zoo_matmul_drops_tail": ("MatMul", tail_lost),
    "mod_sign_of_dividend": ("Mod", fmod),
    "add_broadcasts_along_rows": ("Add", along_rows),
    "prelu_of_one_slope": ("PRelu", one_slope),
    "sigmoid_of_nan_is_zero": ("Sigmoid", nan_is_zero),
    "sum_skips_nan": ("ReduceSum", nan_is_skipped),
    "matmul_drops_tail_above_64": ("MatMul", tail_lost),
    "gather_from_behind": ("Gather", not_from_behind),
    "erf_in_half": ("Erf", in_half),
    "softmax_overflows": ("Softmax", raw_exponentials),
    "clip_has_no_upper_end": ("Clip", no_upper_end),
    "tanh_raises": ("Tanh", raises),
}


def rewritten(model: Any, rewrite: Rewrite) -> Any:
    """A model, whether bytes, array or message, as the runtime misreads it."""
    if isinstance(model, onnx.ModelProto):
        found = onnx.ModelProto()
        found.CopyFrom(model)
        rewrite(found.graph)
        return found
    found = onnx.ModelProto.FromString(bytes(model))
    rewrite(found.graph)
    return found.SerializeToString()


def plant_rewrite(rewrite: Rewrite) -> None:
    """In every runtime that is installed; the worker uses one of them."""
    runtime = os.environ["FAULTY"]
    if runtime == "onnxruntime":
        import onnxruntime

        released = onnxruntime.InferenceSession

        def session(model: Any, *rest: Any, **more: Any) -> Any:
            return released(rewritten(model, rewrite), *rest, **more)

        onnxruntime.InferenceSession = session
    elif runtime == "openvino":
        import openvino

        read_model = openvino.Core.read_model

        def read(self: Any, model: Any, *rest: Any, **more: Any) -> Any:
            return read_model(self, rewritten(model, rewrite), *rest, **more)

        openvino.Core.read_model = read
    elif runtime == "opencv":
        import cv2

        load = cv2.dnn.readNetFromONNX

        def loaded(model: Any, *rest: Any, **more: Any) -> Any:
            data = rewritten(model.tobytes(), rewrite)
            return load(np.frombuffer(data, np.uint8), *rest, **more)

        setattr(cv2.dnn, "readNetFromONNX", loaded)  # noqa: B010 - its stub forbids it
    else:
        from onnx.reference import ReferenceEvaluator

        begin = ReferenceEvaluator.__init__

        def begun(self: Any, proto: Any, *rest: Any, **more: Any) -> None:
            whole = isinstance(proto, onnx.ModelProto)
            begin(self, rewritten(proto, rewrite) if whole else proto, *rest, **more)

        ReferenceEvaluator.__init__ = begun


def plant_kernel(kind: str, kernel: Kernel) -> None:
    """In every class of operators that computes in a way of its own."""
    from onnx.reference.op_run import OpRun
    from onnx.reference.ops import _op

    shared = [value for value in vars(_op).values() if isinstance(value, type)]
    for held in [OpRun, *shared]:
        if issubclass(held, OpRun) and "run" in vars(held):
            held.run = faulty(held.run, kind, kernel)


def faulty(released: Any, kind: str, kernel: Kernel) -> Any:
    def run(self: Any, *args: Any, **more: Any) -> Any:
        made = released(self, *args, **more)
        if self.onnx_node.op_type != kind:
            return made
        changed = kernel(list(args), list(made), attributes_of(self.onnx_node))
        return tuple(np.asarray(new, old.dtype) for new, old in zip(changed, made, strict=True))

    return run


def plant(name: str) -> None:
    if name in REWRITES:
        plant_rewrite(REWRITES[name])
    else:
        plant_kernel(*KERNELS[name])


if __name__ == "__main__":
    plant(os.environ["FAULT"])
