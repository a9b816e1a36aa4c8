"""What attributes may be (AUDEE's configurations, section 2.3): usual, corners, illegal.

ONNX uses one name for one idea, so one row by name serves every operator, also those that a later
set brings; `BY_OPERATOR` holds what a name means elsewhere. `tests/test_onnx_catalogue.py` holds
the rows against the schemas of the installed ONNX.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outvote.dialects.onnx.nouns.types import CODES

Number = int | float


@dataclass(frozen=True)
class AttributeValues:
    """One row. What depends on the tensors that a node reads (axes, sizes) is drawn there.

    Of lists, `values` and `corners` hold what may stand in each place.
    """

    form: str  # flag, choice, axis, axes, sizes, pads, count, number, type, order, text
    values: tuple[Any, ...] = ()  # usual ones
    corners: tuple[Any, ...] = ()  # legal ones that are rarely tried
    since: Mapping[Any, int] = field(default_factory=dict)  # version of the set, of newer values

    def legal(self, opset: int) -> list[Any]:
        """Usual values and corners, simple ones first, as far as a version of the set has them."""
        known = dict.fromkeys((*self.values, *self.corners))
        return [value for value in known if self.since.get(value, 0) <= (opset or 10**9)]


def _choice(*values: str, **since: int) -> AttributeValues:
    return AttributeValues("choice", (*values, *since), since=since)


def _numbers(*values: Number, corners: Sequence[Number] = ()) -> AttributeValues:
    return AttributeValues("number", values, tuple(corners))


def _counts(*values: int, corners: Sequence[int] = ()) -> AttributeValues:
    return AttributeValues("count", values, tuple(corners))


_FLAG = AttributeValues("flag", (0, 1))
_FLAGS = (
    "keepdims noop_with_empty_axes select_last_index align_corners ceil_mode count_include_pad "
    "storage_order saturate exclusive reverse onesided inverse transA transB detect_negative "
    "detect_positive fmod sorted largest upper periodic allowzero antialias exclude_outside "
    "center_point_box linear_before_reset input_forget interleaved is_causal layout new_axis "
    "training_mode"
).split()
_FLOATS = ("float32", "float16", "float64", "bfloat16")
_TYPES = tuple(CODES[name] for name in ("float32", "int64", "int32", "bool", "float16", "float64"))
_MORE_TYPES = tuple(CODES[name] for name in ("uint8", "int8", "bfloat16", "uint16", "int16"))

BY_NAME: Mapping[str, AttributeValues] = {
    **dict.fromkeys(_FLAGS, _FLAG),
    # Places and windows.
    "axis": AttributeValues("axis", (0, -1, 1), (-2, 2)),
    "batch_axis": AttributeValues("axis", (0, 1)),
    "time_axis": AttributeValues("axis", (0, 1)),
    "axes": AttributeValues("axes", (0, -1, 1), (-2, 2)),
    "perm": AttributeValues("order"),
    "kernel_shape": AttributeValues("sizes", (3, 2, 1), (4, 5)),
    "strides": AttributeValues("sizes", (1, 2), (3, 5)),
    "dilations": AttributeValues("sizes", (1, 2), (3,)),
    "pooled_shape": AttributeValues("sizes", (1, 2), (3,)),
    "pads": AttributeValues("pads", (0, 1), (2, 3)),
    "output_padding": AttributeValues("pads", (0, 1)),
    "output_shape": AttributeValues("sizes", (4, 6), (9,)),
    "start": AttributeValues("place", (0, 1), (-1, 9, -9)),
    "end": AttributeValues("place", (1, 2), (-1, 9, -9)),
    "batch_dims": AttributeValues("place", (0, 1)),
    # Functions and manners.
    "auto_pad": _choice("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "mode": _choice("constant", "reflect", "edge", wrap=19),
    "direction": _choice("forward", "reverse", "bidirectional"),
    "reduction": _choice("mean", "sum", "none"),
    "coordinate_transformation_mode": _choice(
        "half_pixel",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_crop_and_resize",
        half_pixel_symmetric=19,
    ),
    "nearest_mode": _choice("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    "keep_aspect_ratio_policy": _choice("stretch", "not_larger", "not_smaller"),
    "padding_mode": _choice("zeros", "border", "reflection"),
    "approximate": _choice("none", "tanh"),
    "round_mode": _choice("up", "down", "nearest"),
    "activations": AttributeValues("list"),
    "activation_alpha": AttributeValues("list"),
    "activation_beta": AttributeValues("list"),
    "equation": AttributeValues("text"),
    # Numbers.
    "alpha": _numbers(0.5, 1.0, 0.01, corners=(0.0, -1.0, 2.0, 1e6)),
    "beta": _numbers(0.5, 1.0, corners=(0.0, -1.0, 2.0)),
    "gamma": _numbers(1.05, 1.0, corners=(0.0, 2.0)),
    "epsilon": _numbers(1e-5, 1e-3, corners=(0.0, 1e-12, 1.0)),
    "momentum": _numbers(0.9, corners=(0.0, 1.0)),
    "bias": _numbers(1.0, 0.0, corners=(0.5, 1e-6)),
    "lambd": _numbers(0.5, 0.0, corners=(1.0, 2.0)),
    "clip": _numbers(1.0, 3.0, corners=(0.1, 1e-3)),
    "cubic_coeff_a": _numbers(-0.75, -0.5, corners=(0.0, -1.0)),
    "extrapolation_value": _numbers(0.0, 1.5, corners=(-1.0, 1e6)),
    "spatial_scale": _numbers(1.0, 0.5, corners=(0.25, 2.0)),
    "softcap": _numbers(0.0, 2.0, corners=(30.0,)),
    "scale": _numbers(1.0, 0.5, corners=(0.0, 2.0)),
    # Counts.
    "group": _counts(1, 2, corners=(3, 4)),
    "num_groups": _counts(1, 2, corners=(3, 4)),
    "offset_group": _counts(1, 2),
    "num_outputs": _counts(2, 1, corners=(3,)),
    "blocksize": _counts(2, 1, corners=(3,)),
    "size": _counts(3, 1, corners=(2, 4, 5)),
    "p": _counts(2, 1, corners=(3,)),
    "hidden_size": _counts(3, 1, corners=(2,)),
    "output_height": _counts(1, 2, corners=(3,)),
    "output_width": _counts(1, 2, corners=(3,)),
    "num_heads": _counts(1, 2),
    "q_num_heads": _counts(1, 2),
    "kv_num_heads": _counts(1, 2),
    "chunk_size": _counts(64, 1),
    "sampling_ratio": AttributeValues("place", (0, 2), (1, 3)),
    "block_size": AttributeValues("place", (0,), (2,)),
    "rotary_embedding_dim": AttributeValues("place", (0,), (2,)),
    "k": AttributeValues("place", (0, 1), (-1, 9, -9)),
    "ignore_index": AttributeValues("place", (1, 0), (-1,)),
    "qk_matmul_output_mode": AttributeValues("place", (0, 1, 2, 3)),
    "left_window_size": AttributeValues("place", (-1, 1), (0, 2)),
    "right_window_size": AttributeValues("place", (-1, 1), (0, 2)),
    # Types.
    "to": AttributeValues("type", _TYPES, _MORE_TYPES),
    "dtype": AttributeValues("type", _TYPES, _MORE_TYPES),
    "output_dtype": AttributeValues("type"),
    "output_datatype": AttributeValues("type", tuple(CODES[name] for name in _FLOATS[:3])),
    "stash_type": AttributeValues("type", (CODES["float32"],), (CODES["bfloat16"],)),
    "softmax_precision": AttributeValues("type", tuple(CODES[name] for name in _FLOATS[:3])),
    "precision": AttributeValues("type"),
}
BY_OPERATOR: Mapping[tuple[str, str], AttributeValues] = {
    ("DepthToSpace", "mode"): _choice("DCR", "CRD"),
    ("SpaceToDepth", "mode"): _choice("DCR", "CRD"),
    ("Resize", "mode"): _choice("nearest", "linear", "cubic"),
    ("Upsample", "mode"): _choice("nearest", "linear"),
    ("GridSample", "mode"): _choice("bilinear", "nearest", "bicubic", linear=20, cubic=20),
    ("RoiAlign", "mode"): _choice("avg", "max"),
    ("TensorScatter", "mode"): _choice("linear", "circular"),
    ("RoiAlign", "coordinate_transformation_mode"): _choice("output_half_pixel", "half_pixel"),
    ("BitShift", "direction"): _choice("LEFT", "RIGHT"),
    ("ScatterElements", "reduction"): _choice("none", "add", "mul", max=18, min=18),
    ("ScatterND", "reduction"): _choice("none", "add", "mul", max=18, min=18),
    ("CausalConvWithState", "activation"): _choice("none", "silu", "swish"),
    ("LinearAttention", "update_rule"): _choice("linear", "gated", "delta", "gated_delta"),
    ("LpNormalization", "p"): _counts(2, 1),
    ("LRN", "alpha"): _numbers(1e-4, 0.5, corners=(1.0, 2.0)),
    ("Softmax", "axis"): AttributeValues("axis", (-1, 0, 1), (-2, 2)),
}
# Left as they are: what they ask for is training, chance, or no result of the node.
LEFT_ALONE = frozenset({"seed", "training_mode", "momentum", "precision"})
# What the shapes of a node's constants say already: other values would not fit them.
_TIED = frozenset({"hidden_size", "layout", "transA", "transB"})
_BOTH = "bidirectional"  # takes twice as many weights as one direction
_TIED_OF = frozenset({("Pad", "mode")})  # how far one can reflect depends on the pads
_ILLEGAL: Mapping[str, tuple[Any, ...]] = {
    "flag": ("no_such",),
    "choice": ("no_such", 7),
    "axis": (99, -99, "no_such"),
    "axes": ([99], [-99], "no_such"),
    "count": (0, -1, "no_such"),
    "number": ("no_such",),
    "place": ("no_such",),
    "type": (0, 999, "no_such"),
    "text": ("", "no such", 7),
}
_EVENLY: Mapping[str, tuple[int, ...]] = {"sizes": (0, -1), "pads": (-1,)}


def values_of(operator: str, name: str) -> AttributeValues | None:
    """The row of an attribute; None where nothing is known of its values."""
    return BY_OPERATOR.get((operator, name)) or BY_NAME.get(name)


def others(operator: str, name: str, value: Any, opset: int = 0) -> list[Any]:
    """Other legal values than the one it has, simple ones first (AUDEE's `replace`)."""
    row = values_of(operator, name)
    if row is None or name in LEFT_ALONE | _TIED or (operator, name) in _TIED_OF:
        return []
    if row.form == "order":
        return [list(reversed(value))] if isinstance(value, list | tuple) else []
    if row.form in ("sizes", "pads", "axes"):
        length = len(value) if isinstance(value, list | tuple) else 0
        if not length or (length > 1 and row.form == "axes"):  # an axis is not named twice
            return []
        return [many for n in row.legal(opset) if (many := [n] * length) != list(value)]
    return [other for other in row.legal(opset) if other != value and _BOTH not in (other, value)]


def illegal(operator: str, name: str, value: Any) -> list[Any]:
    """Values that every runtime must refuse; lists are as long as the one that is there."""
    row = values_of(operator, name)
    if row is None or name in LEFT_ALONE:
        return []
    length = len(value) if isinstance(value, list | tuple) else 0
    if row.form in _EVENLY:
        return ["no_such", *([n] * length for n in _EVENLY[row.form] if length)]
    if row.form == "order":
        return ["no_such", *([[0] * length, list(value)[:-1]] if length > 1 else [])]
    return list(_ILLEGAL.get(row.form, ()))
