"""Legal values for the parameters of layers, by the parameter's name.

Keras uses one name for one idea, so a table by name serves every layer, also those that come with
a later version. A value may depend on where the layer will stand (`Draw`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

NESTED = "$layer"  # {"$layer": [kind, parameters]}: a layer as the value of a parameter


@dataclass
class Draw:
    """One layer in the making: its kind, its place, and what has been drawn so far."""

    kind: str
    place: tuple[int | None, ...]  # shape of one instance
    rng: np.random.Generator
    activations: Sequence[str]
    keep: bool  # the output must have the shape of the input
    drawn: dict[str, Any] = field(default_factory=dict)

    def one_of(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    @property
    def channels_first(self) -> bool:
        return self.drawn.get("data_format") == "channels_first"

    @property
    def channels(self) -> int:
        return (self.place[0 if self.channels_first else -1] if self.place else None) or 1

    @property
    def spatial(self) -> list[int]:
        inner = self.place[1:] if self.channels_first else self.place[:-1]
        if self.kind.startswith("ConvLSTM"):
            inner = self.place[2:] if self.channels_first else self.place[1:-1]
        return [n or 4 for n in inner]

    @property
    def rank(self) -> int:
        return len(self.place)


Values = Callable[[Draw], Any]


def _per_axis(d: Draw, values: Sequence[int], below: Sequence[int] | None = None) -> Any:
    """One number for all axes, or one for each."""
    limit = below or [99] * len(d.spatial)
    allowed = [[v for v in values if v <= n] or [1] for n in limit]
    if d.chance(0.3) and len(allowed) > 1:
        return [d.one_of(*choices) for choices in allowed]
    common = [v for v in values if v <= min(limit, default=1)] or [1]
    return d.one_of(*common)


def _strides(d: Draw) -> Any:
    if d.keep:
        return 1
    return _per_axis(d, (1, 2, 3))


def _dilation(d: Draw) -> Any:
    strides = d.drawn.get("strides", 1)
    if strides not in (1, [1] * len(d.spatial)):
        return 1
    return _per_axis(d, (1, 1, 2, 3))


def _padding(d: Draw) -> Any:
    if d.kind.startswith("ZeroPadding"):
        if d.keep:
            return 0
        return _pairs(d, [3] * len(d.spatial))
    if d.keep:
        return "same"
    if d.kind == "Conv1D" and not d.channels_first:
        return d.one_of("valid", "same", "causal")
    return d.one_of("valid", "same")


def _pairs(d: Draw, most: Sequence[int]) -> Any:
    """(before, after) for each axis."""
    pairs = [[int(d.rng.integers(n)), int(d.rng.integers(n))] for n in most]
    return pairs[0] if len(pairs) == 1 else pairs


def _cropping(d: Draw) -> Any:
    if d.keep:
        return _pairs(d, [1] * len(d.spatial))
    return _pairs(d, [max(1, (n + 1) // 2) for n in d.spatial])


def _divisor(d: Draw, *numbers: int) -> int:
    fits = [n for n in range(1, min(numbers) + 1) if all(m % n == 0 for m in numbers)]
    return int(d.one_of(*fits))


def _groups(d: Draw) -> int:
    if d.kind == "GroupNormalization":
        axis = d.drawn.get("axis", -1)
        return _divisor(d, d.place[axis - 1 if axis > 0 else axis] or 1)
    return _divisor(d, d.channels, int(d.drawn.get("filters", d.channels)))


def _axis(d: Draw) -> Any:
    axes = [-1, *range(1, d.rank + 1)]
    if d.kind == "Normalization":
        return None
    if d.kind in ("LayerNormalization", "UnitNormalization") and d.rank > 1 and d.chance(0.3):
        return sorted(d.rng.choice(range(1, d.rank + 1), 2, replace=False).tolist())
    known = [a for a in axes if d.place[a - 1 if a > 0 else a] is not None]
    return d.one_of(*(known or [-1]))


def _activation(d: Draw) -> Any:
    fit = [name for name in d.activations if name != "glu"]
    return d.one_of(*fit)


def _layer(d: Draw) -> Any:
    """What a wrapper wraps."""
    if d.kind == "Bidirectional":
        kind = d.one_of("LSTM", "GRU", "SimpleRNN")
        units = d.channels if d.keep else d.one_of(2, 3)
        more = {"return_sequences": True if d.keep else d.one_of(True, False)}
        return {NESTED: [kind, {"units": units, **more}]}
    if d.kind == "TimeDistributed" and d.rank == 4:
        return {NESTED: ["Conv2D", {"filters": d.channels, "kernel_size": 3, "padding": "same"}]}
    return {NESTED: ["Dense", {"units": d.channels if d.keep else d.one_of(2, 3)}]}


def _cell(d: Draw) -> Any:
    kinds = ("LSTMCell", "GRUCell", "SimpleRNNCell")
    units = d.channels if d.keep else d.one_of(2, 3)
    one = {NESTED: [d.one_of(*kinds), {"units": units}]}
    if d.chance(0.3):
        return [{NESTED: [d.one_of(*kinds), {"units": d.one_of(2, 3)}]}, one]
    return one


def _permutation(d: Draw) -> list[int]:
    return [int(n) + 1 for n in d.rng.permutation(d.rank)]


def _reshaped(d: Draw) -> Any:
    if d.keep:
        return [n or -1 for n in d.place]
    return [n or -1 for n in d.rng.permutation(np.array([n or 1 for n in d.place])).tolist()]


_LETTERS = "bcdefgh"


def _equation(d: Draw) -> str:
    letters = _LETTERS[: d.rank]
    return f"a{letters},{letters[-1]}z->a{letters[:-1]}z"


def _einsum_shape(d: Draw) -> Any:
    if d.kind != "EinsumDense":
        return None
    units = d.channels if d.keep else d.one_of(2, 3)
    return [*d.place[:-1], units]


def _scale(d: Draw) -> Any:
    return d.one_of(0.5, 2.0, -1.0) if d.kind == "Rescaling" else d.one_of(True, False)


def _output_mode(d: Draw) -> str:
    modes = ("one_hot", "multi_hot", "count")
    return str(d.one_of(*modes) if d.kind == "CategoryEncoding" else d.one_of("int", *modes))


def _output_size(d: Draw) -> Any:
    if d.keep:
        return d.spatial
    return [int(d.rng.integers(1, n + 1)) for n in d.spatial]


def _number(*values: Any) -> Values:
    return lambda d: d.one_of(*values)


_flag = _number(True, False)


def _kept(keep: Values, free: Values) -> Values:
    return lambda d: keep(d) if d.keep else free(d)


VALUES: Mapping[str, Values] = {
    "data_format": _number(None, None, "channels_last", "channels_first"),
    "filters": _kept(lambda d: d.channels, _number(1, 2, 3, 4, 6)),
    "units": _kept(lambda d: d.channels, _number(1, 2, 3, 5)),
    "padding": _padding,
    "kernel_size": lambda d: _per_axis(
        d, (1, 2, 3, 4, 5), None if d.drawn.get("padding") == "same" else d.spatial
    ),
    "strides": _strides,
    "dilation_rate": _dilation,
    "groups": _groups,
    "depth_multiplier": _kept(_number(1), _number(1, 2, 3)),
    "pool_size": lambda d: _per_axis(d, (1, 2, 3, 4), d.spatial),
    "output_size": _output_size,
    "activation": _activation,
    "recurrent_activation": _number("sigmoid", "hard_sigmoid", "tanh", "relu"),
    "use_bias": _flag,
    "center": _flag,
    "unroll": _flag,
    "go_backwards": _flag,
    "reset_after": _flag,
    "unit_forget_bias": _flag,
    "zero_output_for_mask": _flag,
    "normalize": _flag,
    "use_scale": _flag,
    "keepdims": _flag,
    "mask_zero": _flag,
    "invert": _flag,
    "antialias": _flag,
    "crop_to_aspect_ratio": _number(False, False, True),
    "return_sequences": _kept(_number(True), _flag),
    "score_mode": _number("dot", "concat"),
    "axis": _axis,
    "axes": lambda d: d.one_of(*range(1, d.rank + 1)),
    "epsilon": _number(1e-3, 1e-5, 1e-7, 1e-2),
    "alpha": _number(0.5, 1.0, 2.0),
    "negative_slope": _number(0.0, 0.1, 0.3),
    "max_value": _number(None, 1.0, 6.0),
    "threshold": _number(0.0, 0.5),
    "shared_axes": lambda d: d.one_of(None, *([n] for n in range(1, d.rank + 1))),
    "rate": _number(0.1, 0.5),
    "stddev": _number(0.1, 1.0),
    "l1": _number(0.0, 0.1),
    "l2": _number(0.0, 0.1),
    "num_heads": _number(1, 2, 3),
    "key_dim": _number(1, 2, 4),
    "value_dim": _number(None, 3),
    "head_dim": _number(2, 4),
    "num_query_heads": _number(2, 4),
    "num_key_value_heads": _number(1, 2),
    "use_gate": _flag,
    "sliding_window": _number(None, None, 2),
    "size": _kept(_number(1), lambda d: _per_axis(d, (1, 2, 3))),
    "interpolation": _number("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"),
    "height": _kept(lambda d: d.spatial[0], lambda d: int(d.rng.integers(1, d.spatial[0] + 3))),
    "width": _kept(lambda d: d.spatial[-1], lambda d: int(d.rng.integers(1, d.spatial[-1] + 3))),
    "cropping": _cropping,
    "dims": _permutation,
    "target_shape": _reshaped,
    "n": _number(1, 2, 3),
    "merge_mode": _kept(_number("sum", "mul", "ave"), _number("sum", "mul", "ave", "concat")),
    "layer": _layer,
    "cell": _cell,
    "equation": _equation,
    "output_shape": _einsum_shape,
    "bias_axes": _number(None, "z"),
    "bin_boundaries": _number([-1.0, 0.0, 1.0], [-0.5, 0.1, 0.2, 3.0]),
    "num_bins": lambda d: None if d.kind == "Discretization" else d.one_of(3, 7),
    "num_tokens": _number(8),
    "output_mode": _output_mode,
    "vocabulary": _number([1, 2, 3], [2, 5]),
    "input_dim": _number(16),
    "output_dim": _number(2, 3),
    "mask_value": _number(0.0),
    "scale": _scale,
    "offset": _number(0.0, 1.5),
    "mean": _number(0.0, 0.5),
    "variance": _number(1.0, 0.25),
    "power_iterations": _number(1, 2),
    "tile_grid_size": _number([1, 1], [2, 2]),
    "fft_length": _number(8, 16),
    "sequence_stride": _number(2, 4),
    "frame_length": _number(4, 8),
    "frame_step": _number(2, 3),
    "num_mel_bins": _number(3),
    "sampling_rate": _number(100),
    "min_freq": _number(1.0),
    "mode": lambda d: d.one_of("log", "magnitude", "psd", "real", "imag", "angle"),
    "window": _number("hann", "hamming", None),
    "power_to_db": _flag,
}

# What these switch on is no function of the input, gives other outputs than one tensor, or is
# a matter of training.
LEFT_ALONE = frozenset(
    "seed dropout recurrent_dropout noise_shape stateful return_state sparse weights lora_rank "
    "lora_alpha quantization_config gptq_unpacked_column_size momentum renorm renorm_clipping "
    "renorm_momentum synchronized use_cudnn flash_attention attention_axes backward_layer "
    "value_range fill_mode fill_value pad_to_aspect_ratio clip_limit bins expand_dims periodic "
    "scaling sequence_length max_freq top_db mag_exp min_power ref_power output_padding "
    "max_tokens num_oov_indices mask_token oov_token vocabulary_dtype idf_weights "
    "addition_factor threshold_factor pad_to_max_tokens oov_method salt tie_weights "
    "reverse_dtype logit_soft_cap".split()
)
FIRST = ("data_format", "padding", "filters", "axis", "strides")  # others depend on them
