"""The API configurations (AUDEE, section 2.3): what every parameter of every layer may be.

Keras uses one name for one idea, so one row by name serves every kind of layer, also those that a
later version brings; `EXCEPTIONS` holds the kinds for which a row does not hold. To teach a new
parameter, add a row: its type, how usual values are drawn, legal values that are rarely tried
(corners), and illegal ones where those of its type do not fit. `tests/test_parameters.py` holds the
rows against the signatures of the installed Keras.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from outvote.dialects.keras.mutate import values as v

# What must be refused, by type. "None" is left out in rows where it is a legal choice.
ILLEGAL: Mapping[str, tuple[Any, ...]] = {
    "count": (0, -1, None, 1.5),
    "sizes": (0, -1, None, 1.5, []),
    "choice": (None, "no_such", 7),
    "flag": (),  # Python takes any value for true or false
    "float": (None, "no_such"),
    "axis": (99, "no_such"),
    "axes": (99, "no_such"),
    "shape": (None, "no_such", -7),
    "layer": (None, "no_such"),
    "text": (None, "", 7),
    "numbers": ("no_such",),
}


@dataclass(frozen=True)
class Parameter:
    """One row: a type, usual values for a place, legal corners, and values to be refused."""

    type: str
    draw: v.Values
    corners: tuple[Any, ...] = ()
    may_be_none: bool = False
    refused: tuple[Any, ...] | None = None  # instead of those of the type

    @property
    def illegal(self) -> tuple[Any, ...]:
        """Values that every implementation must refuse."""
        listed = ILLEGAL[self.type] if self.refused is None else self.refused
        return tuple(value for value in listed if not (value is None and self.may_be_none))


def _flag(draw: v.Values = v.flag) -> Parameter:
    return Parameter("flag", draw, (True, False))


def _choice(*values: Any, draw: v.Values | None = None) -> Parameter:
    named = tuple(value for value in values if value is not None)
    return Parameter("choice", draw or v.number(*values), named, may_be_none=None in values)


def _share(*usual: float, corners: tuple[float, ...]) -> Parameter:
    """A range that is one number."""
    alike = tuple([number, number] for number in corners)
    drawn = v.number(*([number, number] for number in usual))
    return Parameter("float", drawn, alike, refused=("no_such",))


PARAMETERS: Mapping[str, Parameter] = {
    # Shapes of windows and of what comes out.
    "filters": Parameter(
        "count", v.kept(lambda d: d.channels, v.size(2, 4, odd=(1, 3, 6))), (1, 5, 8)
    ),
    "units": Parameter(
        "count", v.kept(lambda d: d.channels, v.size(2, 4, odd=(1, 3, 5))), (1, 7, 16)
    ),
    "kernel_size": Parameter(
        "sizes",
        lambda d: v.per_axis(
            d, (1, 2, 3, 4, 5), None if d.drawn.get("padding") == "same" else d.spatial
        ),
        (3, 2, 1, 4, 7),
    ),
    "pool_size": Parameter(
        "sizes", lambda d: v.per_axis(d, (1, 2, 3, 4), d.spatial), (2, 3, 1, 4, 5)
    ),
    "strides": Parameter("sizes", v.strides, (1, 2, 3, 5)),
    "dilation_rate": Parameter("sizes", v.dilation, (1, 2, 3)),
    "size": Parameter("sizes", v.kept(v.number(1), lambda d: v.per_axis(d, (1, 2, 3))), (1, 2, 3)),
    "output_size": Parameter("sizes", v.output_size, (1, 2, 3, 5)),
    "padding": _choice("valid", "same", "causal", draw=v.padding),
    "data_format": _choice(
        None,
        "channels_last",
        "channels_first",
        draw=v.number(None, "channels_last", "channels_first"),
    ),
    "output_padding": Parameter(
        "sizes", v.output_padding, (0,), may_be_none=True, refused=(-1, 1.5)
    ),
    "groups": Parameter("count", v.groups, (1, 2, 3, 4)),
    "depth_multiplier": Parameter("count", v.kept(v.number(1), v.number(1, 2, 3)), (1, 2, 3)),
    "cropping": Parameter("shape", v.cropping, (0, 1, 2)),
    "height": Parameter(
        "count",
        v.kept(lambda d: d.spatial[0], v.size(4, 8, odd=(1, 2, 3, 5, 7, 9))),
        (1, 2, 9),
    ),
    "width": Parameter(
        "count",
        v.kept(lambda d: d.spatial[-1], v.size(4, 8, odd=(1, 2, 3, 5, 7, 9))),
        (1, 2, 9),
    ),
    "dims": Parameter("shape", v.permutation),
    "target_shape": Parameter("shape", v.reshaped),
    "n": Parameter("count", v.number(1, 2, 3), (1, 2, 7)),
    "output_dim": Parameter("count", v.number(2, 3), (1, 8)),
    "input_dim": Parameter("count", v.number(16), (16, 64)),
    # Functions.
    "activation": Parameter(
        "choice",
        v.activation,
        ("linear", "relu", "tanh", "exponential", "softmax", "gelu"),
        may_be_none=True,
    ),
    "recurrent_activation": Parameter(
        "choice",
        v.number("sigmoid", "hard_sigmoid", "tanh", "relu"),
        ("sigmoid", "tanh", "relu", "linear"),
        may_be_none=True,
    ),
    "interpolation": _choice("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"),
    "merge_mode": Parameter(
        "choice",
        v.kept(v.number("sum", "mul", "ave"), v.number("sum", "mul", "ave", "concat", None)),
        ("concat", "sum", "mul", "ave"),
        may_be_none=True,
    ),
    "fill_mode": _choice("reflect", "wrap", "constant", "nearest"),
    "score_mode": _choice("dot", "concat"),
    "output_mode": _choice("int", "one_hot", "multi_hot", "count", draw=v.output_mode),
    "mode": _choice("log", "magnitude", "psd", "real", "imag", "angle"),
    "window": _choice("hann", "hamming", None),
    "scaling": _choice("density", "spectrum", None),
    "oov_method": _choice("floormod", "farmhash"),
    # Switches.
    "use_bias": _flag(),
    "center": _flag(),
    "unroll": _flag(),
    "go_backwards": _flag(),
    "reset_after": _flag(),
    "unit_forget_bias": _flag(),
    "zero_output_for_mask": _flag(),
    "normalize": _flag(),
    "use_scale": _flag(),
    "use_gate": _flag(),
    "keepdims": _flag(),
    "mask_zero": _flag(),
    "invert": _flag(),
    "antialias": _flag(),
    "power_to_db": _flag(),
    "crop_to_aspect_ratio": _flag(v.number(False, False, True)),
    "return_state": _flag(v.kept(v.number(False), v.flag)),
    "pad_to_aspect_ratio": _flag(v.number(False, False, True)),
    "periodic": _flag(),
    "expand_dims": _flag(),
    "tie_weights": _flag(),
    "return_sequences": _flag(v.kept(v.number(True), v.flag)),
    "scale": _flag(v.scale),
    # Axes.
    "axis": Parameter("axis", v.axis, (-1, 1, 2, -2)),
    "axes": Parameter(
        "axes", lambda d: d.one_of(*range(1, d.rank + 1), -1, [1, 1], [-1, d.rank]), (1, -1)
    ),
    "shared_axes": Parameter(
        "axes",
        lambda d: d.one_of(None, *([n] for n in range(1, d.rank + 1))),
        ([1], [1, 2]),
        may_be_none=True,
    ),
    "attention_axes": Parameter(
        "axes",
        lambda d: d.one_of(None, *([n] for n in range(1, d.rank)), [*range(1, d.rank)]),
        ([1], [-2]),
        may_be_none=True,
    ),
    # Numbers.
    "epsilon": Parameter(
        "float",
        v.number(1e-3, 1e-5, 1e-7, 1e-2),
        (1e-3, 0.0, 1e-12, 1.0),
        refused=(None, "no_such", -1.0),
    ),
    "alpha": Parameter("float", v.number(0.5, 1.0, 2.0), (1.0, 0.0, 1e-6, 1e6)),
    "negative_slope": Parameter(
        "float", v.number(0.0, 0.1, 0.3), (0.0, 1.0, 3.0), refused=(None, "no_such", -1.0)
    ),
    "max_value": Parameter(
        "float",
        v.number(None, 1.0, 6.0),
        (1.0, 0.0, 1e-6),
        may_be_none=True,
        refused=("no_such", -1.0),
    ),
    "threshold": Parameter(
        "float", v.number(0.0, 0.5), (0.0, 1.0, 1e6), refused=(None, "no_such", -1.0)
    ),
    "rate": Parameter("float", v.number(0.1, 0.5), (0.0, 0.9), refused=(None, -0.5, 1.5)),
    "stddev": Parameter("float", v.number(0.1, 1.0), (0.0, 1e-6), refused=(None, -0.5)),
    "l1": Parameter("float", v.number(0.0, 0.1), (0.0, 1e6)),
    "l2": Parameter("float", v.number(0.0, 0.1), (0.0, 1e6)),
    "offset": Parameter("float", v.number(0.0, 1.5), (0.0, -1.0, 1e30)),
    "mean": Parameter(
        "float",
        lambda d: v.for_channels(d, d.one_of(0.0, 0.5)),
        (0.0, 1e6),
        may_be_none=True,
    ),
    "variance": Parameter(
        "float",
        lambda d: v.for_channels(d, d.one_of(1.0, 0.25)),
        (1.0, 0.0, 1e-12),
        may_be_none=True,
    ),
    # Of augmentations: from a number to the same, so that chance has no say.
    "factor": _share(0.3, 0.75, corners=(0.0, 0.5, 1.0)),
    "sigma": _share(1.0, 0.5, corners=(1.0, 0.1)),
    "height_factor": _share(0.2, -0.3, corners=(0.0, 0.5)),
    "width_factor": _share(0.2, -0.3, corners=(0.0, 0.5)),
    "mask_value": Parameter("float", v.number(0.0, 1.0), (0.0, -1.0), may_be_none=True),
    "fill_value": Parameter("float", v.number(0.0, 1.5), (0.0, -1.0, 1e6)),
    "clip_limit": Parameter("float", v.number(4.0, 1.0), (4.0, 0.5, 100.0)),
    "top_db": Parameter("float", v.number(80.0, 20.0), (80.0, 1.0), refused=("no_such",)),
    "mag_exp": Parameter("float", v.number(2.0, 1.0), (2.0, 1.0, 0.5)),
    "min_power": Parameter("float", v.number(1e-10, 1e-5), (1e-10, 1.0)),
    "ref_power": Parameter("float", v.number(1.0, 2.0), (1.0, 1e-6)),
    "max_freq": Parameter("float", v.number(None, 40.0), (40.0,), may_be_none=True),
    "logit_soft_cap": Parameter("float", v.number(None, 5.0), (5.0, 1e-3), may_be_none=True),
    # Attention.
    "num_heads": Parameter("count", v.number(1, 2, 3), (1, 2, 5)),
    "key_dim": Parameter("count", v.number(1, 2, 4), (1, 2, 7)),
    "value_dim": Parameter("count", v.number(None, 3), (1, 3), may_be_none=True),
    "head_dim": Parameter("count", v.number(2, 4), (1, 2, 7)),
    "num_query_heads": Parameter("count", v.number(2, 4), (2, 4)),
    "num_key_value_heads": Parameter("count", v.number(1, 2), (1, 2)),
    "sliding_window": Parameter("count", v.number(None, None, 2), (1, 2, 99), may_be_none=True),
    # Layers and formulas inside layers.
    "layer": Parameter("layer", v.layer),
    "backward_layer": Parameter("layer", v.backward_layer, may_be_none=True),
    "cell": Parameter("layer", v.cell),
    "equation": Parameter("text", v.equation),
    "output_shape": Parameter("shape", v.einsum_shape, may_be_none=True),
    "bias_axes": Parameter("text", v.bias_axes, ("z",), may_be_none=True, refused=("no_such", 7)),
    # Preprocessing.
    "bin_boundaries": Parameter(
        "numbers",
        v.number([-1.0, 0.0, 1.0], [-0.5, 0.1, 0.2, 3.0]),
        ([-1.0, 0.0, 1.0], [0.0]),
    ),
    "num_bins": Parameter(
        "count", lambda d: None if d.kind == "Discretization" else d.one_of(3, 7)
    ),
    "value_range": Parameter("numbers", v.number([0, 255], [0, 1]), ([0, 255], [0, 1], [-1, 1])),
    "bins": Parameter("count", v.number(256, 16), (256, 8, 2)),
    "num_oov_indices": Parameter("count", v.number(1, 2), (1, 0, 3), refused=(-1, 1.5)),
    "mask_token": Parameter(
        "count", v.number(None, 0), (0,), may_be_none=True, refused=("no_such",)
    ),
    "max_tokens": Parameter("count", v.number(None, 8), (8,), may_be_none=True, refused=(0, -1)),
    "pad_to_max_tokens": Parameter("flag", v.padded_to_tokens, (False,)),
    "oov_token": Parameter("count", v.number(-1, -2), (-1, 9), refused=("no_such",)),
    "salt": Parameter("count", v.number(None, 7), (7,), may_be_none=True, refused=("no_such",)),
    "sequence_length": Parameter("count", v.number(None, 4, 8), (4, 8), may_be_none=True),
    "num_tokens": Parameter("count", v.number(8), (8, 64)),
    "vocabulary": Parameter("numbers", v.number([1, 2, 3], [2, 5]), ([1, 2, 3], [0, 1])),
    "power_iterations": Parameter("count", v.number(1, 2), (1, 5)),
    "tile_grid_size": Parameter("sizes", v.number([1, 1], [2, 2]), ([1, 1], [2, 2], [1, 3])),
    "fft_length": Parameter("count", v.number(8, 16), (8, 32)),
    "sequence_stride": Parameter("count", v.number(2, 4), (2, 3)),
    "frame_length": Parameter("count", v.number(4, 8), (2, 5)),
    "frame_step": Parameter("count", v.number(2, 3), (1, 3), may_be_none=True),
    "num_mel_bins": Parameter("count", v.number(3), (1, 5)),
    "sampling_rate": Parameter("count", v.number(100), (100, 16000)),
    "min_freq": Parameter("float", v.number(1.0), (1.0, 10.0), refused=(None, -1.0, "no_such")),
}

_SCALE_OF_RESCALING = Parameter("float", v.scale, (1.0, 0.0, -1.0, 1e30))
_AMOUNTS = Parameter("shape", v.padding, (0, 1, 2))
_POOLING = ("AveragePooling", "MaxPooling")
# Where the row by name does not hold: (kind, parameter) → its own row.
EXCEPTIONS: Mapping[tuple[str, str], Parameter] = {
    ("Rescaling", "scale"): _SCALE_OF_RESCALING,
    **{(f"ZeroPadding{n}D", "padding"): _AMOUNTS for n in (1, 2, 3)},
    **{
        (f"{kind}{n}D", "strides"): replace(PARAMETERS["strides"], may_be_none=True)
        for kind in _POOLING
        for n in (1, 2, 3)
    },
    **{
        (kind, "interpolation"): _choice("nearest", "bilinear")
        for kind in ("RandomRotation", "RandomTranslation", "RandomZoom")
    },
    ("Resizing", "fill_mode"): _choice("constant"),
    ("RandomGrayscale", "factor"): Parameter(
        "float", v.number(1.0), (1.0, 0.0), refused=("no_such", -1.0)
    ),
    **{  # of how many images
        (kind, "factor"): _share(1.0, corners=(1.0, 0.0))
        for kind in ("RandomGaussianBlur", "RandomInvert")
    },
    ("RandomPosterization", "factor"): Parameter(
        "numbers", v.number([3, 3], [5, 5]), ([1, 1], [8, 8])
    ),
    ("RandomGaussianBlur", "kernel_size"): Parameter(
        "sizes", v.number(3, 5, [3, 5]), (1, 3, 5), refused=(0, 2, "no_such")
    ),
    ("RandomZoom", "width_factor"): replace(PARAMETERS["width_factor"], may_be_none=True),
    ("HashedCrossing", "output_mode"): _choice("int", "one_hot"),
    ("MultiHeadAttention", "output_shape"): Parameter(
        "shape", v.kept(v.number(None), v.number(None, None, 3, [2, 3])), may_be_none=True
    ),
    ("Hashing", "mask_value"): Parameter(
        "count", v.number(None, 0, 1), (0, 1), may_be_none=True, refused=("no_such",)
    ),
    ("Normalization", "axis"): replace(PARAMETERS["axis"], may_be_none=True),
    ("STFTSpectrogram", "fft_length"): replace(PARAMETERS["fft_length"], may_be_none=True),
    ("Discretization", "num_bins"): replace(PARAMETERS["num_bins"], may_be_none=True),
}
# Every layer has it; it is never drawn, only changed (AUDEE's network mutation).
DTYPE = Parameter("choice", v.number("float32"), ("float32", "float16", "bfloat16", "float64"))


def parameter(kind: str, name: str) -> Parameter | None:
    """The row of a parameter of a kind of layer; None where nothing is known of it."""
    if name == "dtype":
        return DTYPE
    return EXCEPTIONS.get((kind, name)) or PARAMETERS.get(name)
