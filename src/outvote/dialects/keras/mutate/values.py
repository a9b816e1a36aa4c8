"""How legal values for the parameters of layers are drawn, depending on the place (`Draw`).

Which parameter draws what stands in `outvote.mutate.parameters`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_ODD = 0.15  # of the sizes that are drawn
_EACH_ITS_OWN = 0.2  # groups of one channel
_EACH_AXIS = 0.5  # of the windows have a size of its own along each axis: square ones hide much
_SEVERAL_AXES = ("LayerNormalization", "UnitNormalization", "Softmax")
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


def per_axis(d: Draw, values: Sequence[int], below: Sequence[int] | None = None) -> Any:
    """One number for all axes, or one for each."""
    limit = below or [99] * len(d.spatial)
    allowed = [[v for v in values if v <= n] or [1] for n in limit]
    if d.chance(_EACH_AXIS) and len(allowed) > 1:
        return [d.one_of(*choices) for choices in allowed]
    common = [v for v in values if v <= min(limit, default=1)] or [1]
    return d.one_of(*common)


def strides(d: Draw) -> Any:
    if d.keep:
        return 1
    return per_axis(d, (1, 2, 3))


def dilation(d: Draw) -> Any:
    strides = d.drawn.get("strides", 1)
    one_of_them = not d.kind.startswith(("Depthwise", "Separable"))  # as Keras asks
    if one_of_them and strides not in (1, [1] * len(d.spatial)):
        return 1
    return per_axis(d, (1, 1, 2, 3))


def output_padding(d: Draw) -> Any:
    strides = d.drawn.get("strides", 1)
    least = min(strides) if isinstance(strides, list) else strides
    return d.one_of(None, *range(least)) if not d.keep and least > 1 else None


def padding(d: Draw) -> Any:
    if d.kind.startswith("ZeroPadding"):
        if d.keep:
            return 0
        return pairs(d, [3] * len(d.spatial))
    if d.keep:
        return "same"
    if d.kind == "Conv1D" and not d.channels_first:
        return d.one_of("valid", "same", "causal")
    return d.one_of("valid", "same")


def pairs(d: Draw, most: Sequence[int]) -> Any:
    """(before, after) for each axis."""
    pairs = [[int(d.rng.integers(n)), int(d.rng.integers(n))] for n in most]
    return pairs[0] if len(pairs) == 1 else pairs


def cropping(d: Draw) -> Any:
    if d.keep:
        return pairs(d, [1] * len(d.spatial))
    return pairs(d, [max(1, (n + 1) // 2) for n in d.spatial])


def divisor(d: Draw, *numbers: int) -> int:
    fits = [n for n in range(1, min(numbers) + 1) if all(m % n == 0 for m in numbers)]
    return int(d.one_of(*fits))


def groups(d: Draw) -> int:
    if d.kind == "GroupNormalization":
        axis = d.drawn.get("axis", -1)
        if d.chance(_EACH_ITS_OWN):
            return -1
        return divisor(d, d.place[axis - 1 if axis > 0 else axis] or 1)
    return divisor(d, d.channels, int(d.drawn.get("filters", d.channels)))


def axis(d: Draw) -> Any:
    axes = [-1, *range(1, d.rank + 1)]
    if d.kind == "Normalization":
        known = [a for a in axes if d.place[a - 1 if a > 0 else a] is not None]
        return d.one_of(None, *(known or [-1]))
    if d.kind == "RMSNormalization":  # another axis fails everywhere: it is drawn as a corner
        return -1
    if d.kind in _SEVERAL_AXES and d.rank > 1 and d.chance(0.3):
        return sorted(d.rng.choice(range(1, d.rank + 1), 2, replace=False).tolist())
    known = [a for a in axes if d.place[a - 1 if a > 0 else a] is not None]
    return d.one_of(*(known or [-1]))


def activation(d: Draw) -> Any:
    fit = [name for name in d.activations if name != "glu"]
    return d.one_of(*fit)


def layer(d: Draw) -> Any:
    """What a wrapper wraps."""
    if d.kind == "Bidirectional":
        kind = d.one_of("LSTM", "GRU", "SimpleRNN")
        units = d.channels if d.keep else d.one_of(2, 3)
        more: dict[str, Any] = {"return_sequences": True if d.keep else d.one_of(True, False)}
        if not d.keep:
            switches = ("return_state", "unroll", "zero_output_for_mask")
            more |= {name: True for name in switches if d.chance(0.3)}
            more |= _of_cells(d, kind)
        return {NESTED: [kind, {"units": units, **more}]}
    if d.keep:
        return _wrapped_as_it_comes(d)
    inner = _STEPS if d.kind == "TimeDistributed" else _WITH_KERNELS
    kind, parameters = d.one_of(*inner.get(d.rank, inner[2]))
    return {NESTED: [kind, dict(parameters)]}


def backward_layer(d: Draw) -> Any:
    """One of its own for the way back, which differs in how it computes."""
    if d.keep or NESTED not in (d.drawn.get("layer") or {}):
        return None
    kind, parameters = d.drawn["layer"][NESTED]
    return {NESTED: [kind, {**parameters, "go_backwards": True, "activation": "relu"}]}


def _wrapped_as_it_comes(d: Draw) -> Any:
    if d.kind == "TimeDistributed" and d.rank == 4:
        return {NESTED: ["Conv2D", {"filters": d.channels, "kernel_size": 3, "padding": "same"}]}
    return {NESTED: ["Dense", {"units": d.channels}]}


_DENSE = ("Dense", {"units": 3})
# What is put around layers, by the rank of one instance.
_STEPS: Mapping[int, Sequence[tuple[str, Mapping[str, Any]]]] = {
    2: (
        *(_DENSE, ("Activation", {"activation": "softmax"}), ("LayerNormalization", {})),
        *(("BatchNormalization", {}), ("UnitNormalization", {}), ("RepeatVector", {"n": 2})),
    ),
    3: (
        *(_DENSE, ("LSTM", {"units": 2}), ("GRU", {"units": 2, "return_sequences": True})),
        *(("Conv1D", {"filters": 2, "kernel_size": 2, "padding": "same"}), ("Flatten", {})),
        *(("MaxPooling1D", {"padding": "same"}), ("GlobalAveragePooling1D", {})),
        ("LayerNormalization", {}),
    ),
    4: (
        ("Conv2D", {"filters": 2, "kernel_size": 3, "padding": "same"}),
        ("AveragePooling2D", {"padding": "same"}),
        *(("GlobalMaxPooling2D", {}), ("Flatten", {}), ("BatchNormalization", {}), _DENSE),
    ),
}
_WITH_KERNELS: Mapping[int, Sequence[tuple[str, Mapping[str, Any]]]] = {
    1: (_DENSE,),
    2: (_DENSE, ("Conv1D", {"filters": 2, "kernel_size": 2})),
    3: (_DENSE, ("Conv2D", {"filters": 2, "kernel_size": 2, "padding": "same"})),
}


def cell(d: Draw) -> Any:
    kinds = ("LSTMCell", "GRUCell", "SimpleRNNCell")
    units = d.channels if d.keep else d.one_of(2, 3)
    kind = d.one_of(*kinds)
    one = {NESTED: [kind, {"units": units, **({} if d.keep else _of_cells(d, kind))}]}
    if d.chance(0.4):
        below = kind if d.chance(0.5) else d.one_of(*kinds)
        return [{NESTED: [below, {"units": d.one_of(2, 3)}]}, one]
    return one


def _of_cells(d: Draw, kind: str) -> dict[str, Any]:
    found = {"use_bias": False} if d.chance(0.15) else {}
    return found | ({"reset_after": False} if kind.startswith("GRU") and d.chance(0.3) else {})


def permutation(d: Draw) -> list[int]:
    return [int(n) + 1 for n in d.rng.permutation(d.rank)]


def reshaped(d: Draw) -> Any:
    if d.keep:
        return [n or -1 for n in d.place]
    sizes = [n or -1 for n in d.rng.permutation(np.array([n or 1 for n in d.place])).tolist()]
    if d.chance(0.3):
        sizes[int(d.rng.integers(len(sizes)))] = -1  # to be found from the others
    return sizes


_LETTERS = "bcdefgh"


def equation(d: Draw) -> str:
    """The last axis is exchanged; or it is for each of the axis before, or several go or come."""
    all_of_them = _LETTERS[: d.rank]
    before, last = all_of_them[:-1], all_of_them[-1]
    if d.keep or d.chance(0.4):
        return _usual_equation(d)
    ways = [f"...{last},{last}z->...z", f"a{all_of_them},{last}yz->a{before}yz"]
    if before:
        ways += [
            f"a{all_of_them},{all_of_them[-2:]}z->a{before[:-1]}z",
            f"a{all_of_them},{all_of_them[-2:]}z->a{before}z",
            f"a{all_of_them},{all_of_them[0]}z->a{all_of_them[1:]}z",
            f"a{all_of_them},{last}z->az{before}",
        ]
    return str(d.one_of(*ways))


def _usual_equation(d: Draw) -> str:
    letters = _LETTERS[: d.rank]
    return f"a{letters},{letters[-1]}z->a{letters[:-1]}z"


def einsum_shape(d: Draw) -> Any:
    if d.kind != "EinsumDense":
        return None
    units = d.channels if d.keep else d.one_of(2, 3)
    sizes = dict(zip(_LETTERS, d.place, strict=False)) | {"y": 2, "z": units}
    return [sizes[letter] for letter in _einsum_output(d)]


def bias_axes(d: Draw) -> str | None:
    """None, the last axis, or two of them."""
    axes = _einsum_output(d)
    return (None, axes[-1:], axes[-2:])[int(d.rng.integers(3))]


def _einsum_output(d: Draw) -> str:
    """The letters of what comes out, without those of the batch."""
    written = str(d.drawn.get("equation") or _usual_equation(d))
    return written.partition("->")[2].removeprefix("...").removeprefix("a")


def scale(d: Draw) -> Any:
    if d.kind != "Rescaling":
        return d.one_of(True, False)
    return for_channels(d, d.one_of(0.5, 2.0, -1.0))


def for_channels(d: Draw, value: float) -> Any:
    """A number for all, or now and then a list of others for each channel."""
    axis = d.drawn.get("axis", -1)
    if isinstance(axis, (list, tuple)):  # as a layer that was built tells it
        axis = axis[0] if len(axis) == 1 else None
    size = d.place[axis - 1 if axis > 0 else axis] if axis and d.rank else None
    if d.keep or size is None or not d.chance(0.25):
        return value
    return [value + 0.25 * n for n in range(size)]


def output_mode(d: Draw) -> str:
    modes = ("one_hot", "multi_hot", "count")
    return str(d.one_of(*modes) if d.kind == "CategoryEncoding" else d.one_of("int", *modes))


def output_size(d: Draw) -> Any:
    if d.keep:
        return d.spatial
    return [int(d.rng.integers(1, n + 1)) for n in d.spatial]


def padded_to_tokens(d: Draw) -> bool:
    return d.drawn.get("max_tokens") is not None and d.chance(0.5)


def number(*values: Any) -> Values:
    return lambda d: d.one_of(*values)


def size(*usual: int, odd: Sequence[int]) -> Values:
    """One of a few sizes, so that code compiled for a shape is used again, or now and then another.

    JAX compiles every operation for every shape.
    """
    return lambda d: d.one_of(*odd) if d.chance(_ODD) else d.one_of(*usual)


flag = number(True, False)


def kept(keep: Values, free: Values) -> Values:
    return lambda d: keep(d) if d.keep else free(d)


# What these switch on is no function of the input, gives no plain tensor, or is a matter of
# training.
LEFT_ALONE = frozenset(
    "seed dropout recurrent_dropout noise_shape stateful sparse weights lora_rank lora_alpha "
    "quantization_config gptq_unpacked_column_size momentum renorm renorm_clipping "
    "renorm_momentum synchronized use_cudnn flash_attention "
    "vocabulary_dtype idf_weights addition_factor threshold_factor reverse_dtype".split()
)
FIRST = (
    "data_format",
    "padding",
    "filters",
    "axis",
    "strides",
    "equation",
    "layer",
)  # others depend on them
