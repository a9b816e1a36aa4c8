"""How a call of an operator is told as a Layer.

kind      the operator, without the word default: `aten.conv2d`, `aten.add.Tensor`, and what
          computes with sizes: `_operator.mul`, `torch.sym_max`
config    arguments that are plain, by the names that the operator's schema gives them
kwargs    arguments with tensors, constants or computed sizes in them, likewise
weights   parameters, buffers and constants, told of in kwargs by their place: {"$weight": 0}
origin    where the tensors lie in what the operator returns, if that is not one tensor;
          which of its weights are learned, by their places
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from outvote.core.model import REF, Json, Layer, Ref, find_refs

WEIGHT = "$weight"  # {"$weight": place, "type": of bfloat16 alone}
SIZE = "$size"  # {"$size": {"$ref": …}}: a number that another layer computed
DTYPE = "$dtype"  # {"$dtype": "float32"}
LAYOUT = "$layout"
FORMAT = "$memory_format"
DEVICE = "$device"
PATHS = "paths"
LEARNED = "learned"
MARKS = {DTYPE, LAYOUT, FORMAT, DEVICE}
_OPERATORS = "torch.ops."
_DEFAULT = ".default"

# By the numbers that archives call them; NumPy has no bfloat16, which travels as float32.
SCALAR_TYPES = {
    **{1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64"},
    **{6: "float16", 7: "float32", 8: "float64", 12: "bool", 13: "bfloat16"},
    **{28: "uint16", 34: "uint32", 35: "uint64"},
}
FLOATS = ("float16", "bfloat16", "float32", "float64")
LAYOUTS = {7: "strided"}
MEMORY_FORMATS = {
    **{1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
}
# What a program may compute with sizes, besides operators: numbers in, a number out.
SIZE_FUNCTIONS = frozenset(
    [
        f"_operator.{name}"
        for name in """eq ne le ge lt gt neg pos mul add sub floordiv mod pow
        truediv and_ or_ lshift rshift""".split()
    ]
    + [f"torch.sym_{name}" for name in "not int float ite max min".split()]
    + ["torch._sym_sqrt", "math.trunc"]
)


def kind_of(target: str) -> str:
    """The kind of layer that a call's target is."""
    return target.removeprefix(_OPERATORS).removesuffix(_DEFAULT)


def is_operator(target: str) -> bool:
    return target.startswith(_OPERATORS)


def operator_parts(kind: str) -> tuple[str, str, str]:
    """Namespace, operator and overload of a kind."""
    namespace, dot, rest = kind.partition(".")
    operator, _, overload = (rest if dot else namespace).partition(".")
    return namespace if dot else "aten", operator, overload or "default"


def written_operator(kind: str) -> str:
    """The operator as Python calls it."""
    if kind in SIZE_FUNCTIONS:
        return kind.removeprefix("_")
    return _OPERATORS + ".".join(operator_parts(kind))


def is_woven(value: Json) -> bool:
    """Whether an argument reads tensors, constants or computed sizes."""
    if isinstance(value, Mapping):
        return WEIGHT in value or SIZE in value or any(True for _ in find_refs(value))
    return isinstance(value, list) and any(map(is_woven, value))


def ref(producer: str, index: int = 0) -> Json:
    return {REF: [producer, index]}


def paths_of(layer: Layer) -> Sequence[Sequence[int]]:
    """Where each tensor that a layer gives lies in what its operator returns."""
    found: Any = layer.origin.get(PATHS, [[]])
    return [tuple(path) for path in found]


def learned_of(layer: Layer) -> Sequence[int]:
    """The places of the weights that training changes by their gradients."""
    found: Sequence[int] = layer.origin.get(LEARNED, ())
    return found


def weights_in(told: Json) -> Iterator[Mapping[str, Any]]:
    """What is told of weights in arguments."""
    if isinstance(told, Mapping):
        if WEIGHT in told:
            yield told
        else:
            for value in told.values():
                yield from weights_in(value)
    elif isinstance(told, list | tuple):
        for item in told:
            yield from weights_in(item)


def tensors_of(layer: Layer) -> list[Ref]:
    """The tensors that a layer gives, in order."""
    return [Ref(layer.name, place) for place in range(len(paths_of(layer)))]
