"""What a target says of the precision it computes in, and which differences that explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outvote.core.model import Layer
from outvote.judge.tolerance import PLACE

# One last place of the arithmetic that hardware puts in the place of float32. TF32 has the
# exponent of float32 and the mantissa of float16. Tensors quantised to int8 have 128 steps from
# zero to the largest, and are off by a third of one as a rule. What rounding explains holds a
# margin of ten already, in which faults would hide: of convolutions and products that ONNX Runtime
# quantised we measured 700 to 3,100 times that, of a forgotten bias 15,000. 2**-10 lies between.
_PLACE = {
    "tf32": 2.0**-10,
    "bf16": PLACE["bfloat16"],
    "f16": PLACE["float16"],
    "int8": 2.0**-10,
}


@dataclass(frozen=True)
class Coarser:
    """Arithmetic with fewer bits than float32, by a target's own setting."""

    name: str
    everything: bool  # or products of matrices alone

    @property
    def what(self) -> str:
        return "" if self.everything else "products of matrices "

    def explains(self, times: float, layer: Layer) -> bool:
        """Whether a difference of so many times what rounding explains is rounding to these bits.

        A result that float32 moves by so much moves by as many more as its places are coarser:
        8192 times in TF32 (measured: 44 to 125 times what rounding explains, see LOST_DIGITS).
        """
        applies = self.everything or multiplies(layer)
        return applies and times < _PLACE[self.name] / PLACE["float32"]


def coarser(precision: Mapping[str, Any]) -> Coarser | None:
    """What a worker's `precision` declares of float32; None: nothing that is coarser.

    `inference` is the type that everything is computed in, `products` that of matrix products and
    convolutions alone.
    """
    for key in ("inference", "products"):
        if precision.get(key) in _PLACE:
            return Coarser(str(precision[key]), key == "inference")
    return None


def multiplies(layer: Layer) -> bool:
    """Whether a layer may hold a product of matrices: it has one, or reads several tensors."""
    return any(len(w.shape) > 1 for w in layer.weights) or len(list(layer.refs())) > 1


def has_no_64_bits(precision: Mapping[str, Any]) -> bool:
    """Whether a target says that it turns 64-bit numbers into narrower ones."""
    return precision.get("x64") is False
