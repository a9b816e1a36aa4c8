"""How many layers are drawn on average until one could show a bug of a released Keras version?

    python benchmarks/rows_drawn.py                 # all rows of real_bugs.py, 4,000 draws
    python benchmarks/rows_drawn.py --draws 10000

Nothing is run: layers are drawn as `outvote fuzz --strategy layers` draws them (FL), and counted
where their parameters and inputs are such that the fault shows. A row that needs more than 2,000
layers is marked.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from outvote.core.model import Input, Layer, Model, Ref
from outvote.dialects.keras.mutate.rules import free
from outvote.dialects.keras.mutate.tools import keras_tools
from outvote.mutate.subject import Subject
from outvote.run.local import LocalPool
from outvote.targets.choose import choose, known_targets

_MANY = 2000


def _spatial(layer: Layer, x: Any) -> list[int]:
    first = layer.config.get("data_format") == "channels_first"
    return list(x.shape[2:] if first else x.shape[1:-1])


def _each(layer: Layer, name: str, axes: int) -> list[int]:
    value = layer.config.get(name)
    if value is None:  # of a pooling layer
        value = layer.config["pool_size"]
    return list(value) if isinstance(value, list | tuple) else [value] * axes


def _uneven(layer: Layer, x: Any, kernel: str) -> bool:
    """Padding "same" with strides needs one place more behind than before, along some axis."""
    sizes = _spatial(layer, x)
    if layer.config.get("padding") != "same" or not x.size:
        return False
    triples = zip(
        sizes, _each(layer, kernel, len(sizes)), _each(layer, "strides", len(sizes)), strict=True
    )
    return any(s > 1 and max(0, (-(-n // s) - 1) * s + k - n) % 2 for n, k, s in triples)


def _centred(layer: Layer, x: Any) -> bool:
    """Padding "same" with strides needs as much before as behind, and not the same along all axes.

    That much was handed over, in the wrong order; of anything else the input was padded before.
    """
    sizes = _spatial(layer, x)
    each = [_each(layer, name, len(sizes)) for name in ("kernel_size", "strides", "dilation_rate")]
    if layer.config.get("padding") != "same" or not x.size or max(each[1]) == 1:
        return False
    pads = [d * (k - 1) - (n - 1) % s for n, k, s, d in zip(sizes, *each, strict=True)]
    return not any(pad % 2 for pad in pads) and len({*pads}) > 1


def _is_first(layer: Layer) -> bool:
    return layer.config.get("data_format") == "channels_first"


def _holes(layer: Layer, inputs: Sequence[Any]) -> bool:
    """A mask with a step that is left out before one that counts."""
    masks = [a for a in inputs[1:] if a.dtype == bool and a.ndim == 2]
    masks += [(inputs[0] != 0).any(-1)] if inputs[0].ndim == 3 and not masks else []
    return any((~row[:-1] & row[1:]).any() and row.any() for mask in masks for row in mask)


def _encodes(mode: str) -> Callable[[Layer, Sequence[Any]], bool]:
    return lambda layer, inputs: (
        layer.config["output_mode"] == mode and inputs[0].shape[1:] == (1,) and inputs[0].size > 0
    )


def _stacked(layer: Layer, inputs: Sequence[Any]) -> bool:
    cell = layer.config["cell"]
    return cell["class_name"] == "StackedRNNCells" and _holes(layer, inputs)


def _at_borders(layer: Layer, inputs: Sequence[Any]) -> bool:
    if inputs[0].dtype.kind != "f" or layer.config["output_mode"] != "int":
        return False
    return not np.isfinite(inputs[0]).all()


def _too_large(layer: Layer, inputs: Sequence[Any]) -> bool:
    sizes = _spatial(layer, inputs[0])
    pairs = zip(_each(layer, "kernel_size", 2), sizes, strict=True)
    return layer.config["padding"] == "valid" and any(k > n > 0 for k, n in pairs)


# By number of the row: kinds of layers, and whether one of them would show it.
ROWS: Mapping[int, tuple[str, Callable[[Layer, Sequence[Any]], bool]]] = {
    1: ("AveragePooling2D", lambda layer, xs: _uneven(layer, xs[0], "pool_size")),
    2: ("Conv2D", lambda layer, xs: _centred(layer, xs[0])),
    3: ("Conv2DTranspose", lambda layer, xs: layer.config["padding"] == "same"
        and max(_each(layer, "strides", 2)) > 1 and xs[0].size > 0),
    4: ("RNN", _stacked),
    5: ("CategoryEncoding", _encodes("one_hot")),
    6: ("CategoryEncoding", _encodes("multi_hot")),
    7: ("Discretization", lambda layer, xs: layer.config["output_mode"] == "count"),
    8: ("Discretization", _at_borders),
    10: ("Conv2D", lambda layer, xs: len(xs[0]) == 0),
    11: ("Conv2D", _too_large),
    12: ("DepthwiseConv1D", lambda layer, xs: _is_first(layer)
        and max(_each(layer, "dilation_rate", 1)) > 1),
    13: ("SeparableConv2D", lambda layer, xs: _is_first(layer)),
    14: ("Conv3D", lambda layer, xs: _is_first(layer)),
    15: ("AveragePooling2D", lambda layer, xs: _uneven(layer, xs[0], "pool_size")),
    16: ("UpSampling2D", lambda layer, xs: layer.config["interpolation"] == "bicubic"
        and max(_each(layer, "size", 2)) > 1),
    17: ("MaxPooling2D", lambda layer, xs: xs[0].dtype.kind == "f" and np.isnan(xs[0]).any()),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=4000)
    options = parser.parse_args()
    hits: Counter[int] = Counter()
    kinds: Counter[str] = Counter()
    for subject in drawn(options.draws):
        layer = subject.model.layers[-1]
        kinds[layer.kind] += 1
        for number, (kind, shows) in ROWS.items():
            hits[number] += layer.kind == kind and bool(shows(layer, subject.inputs))
    for number, (kind, _) in ROWS.items():
        mean = f"{options.draws / hits[number]:6.0f}" if hits[number] else "  none"
        mark = "" if options.draws <= _MANY * hits[number] else "  more than 2,000"
        print(f"{number:3} {kind:18} {kinds[kind]:4} drawn, one in {mean} layers shows it{mark}")


def drawn(count: int) -> list[Subject]:
    parent = Subject(Model("any", (Input("x", (None, 2), "float32"),), (), (Ref("x"),), "keras"),
                     {})  # fmt: skip
    (target,) = choose(["numpy"], known_targets())
    with LocalPool([target]) as pool:
        tools = keras_tools(pool, "numpy")
        rngs = (np.random.default_rng([5, n]) for n in range(count))
        return [free.apply(parent, None, tools, rng) for rng in rngs]


if __name__ == "__main__":
    main()
