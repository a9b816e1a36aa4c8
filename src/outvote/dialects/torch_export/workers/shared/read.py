"""Turns a `.pt2` archive into neutral data. A model file is untrusted: nothing in it is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from outvote.core.blobs import BlobStore
from outvote.core.model import Input, Json, Layer, Model, Weight, find_refs
from outvote.core.protocol import Form, ModelRead
from outvote.dialects.torch_export.nouns.node import (
    DEVICE,
    DTYPE,
    FORMAT,
    LAYOUT,
    LAYOUTS,
    LEARNED,
    MEMORY_FORMATS,
    PATHS,
    SCALAR_TYPES,
    SIZE,
    SIZE_FUNCTIONS,
    WEIGHT,
    is_operator,
    is_woven,
    kind_of,
    ref,
)
from outvote.dialects.torch_export.workers.shared.aliases import Aliases
from outvote.dialects.torch_export.workers.shared.archive import Archive, number
from outvote.dialects.torch_export.workers.shared.names import Names
from outvote.worker.main import Refused

_SYMBOL = re.compile(r"Symbol\('(\w+)'[^()]*\)")
_INPUTS = {"parameter": "parameter_name", "buffer": "buffer_name"}
_CONSTANT = {"tensor_constant": "tensor_constant_name"}
_PLAIN = """as_int as_ints as_string as_strings as_bool as_bools as_int_lists""".split()
Size = int | str | None  # a number, the name of a free size, or something computed
_MALFORMED = (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError)


@dataclass(frozen=True)
class TensorForm:
    """What an archive says of a tensor."""

    sizes: tuple[Size, ...]
    dtype: str

    def axis_of(self, symbol: str | None) -> int | None:
        """The one axis of that size."""
        axes = [axis for axis, size in enumerate(self.sizes) if size == symbol]
        return axes[0] if symbol is not None and len(axes) == 1 else None

    @property
    def shape(self) -> tuple[int | None, ...]:
        return tuple(size if isinstance(size, int) else None for size in self.sizes)


def read(path: Path, blobs: BlobStore) -> ModelRead:
    """The program in a file; its weights go to the blob store."""
    archive = Archive(path)
    try:
        return _Reader(archive, blobs, path.stem).read()
    except _MALFORMED as error:
        told = f"{type(error).__name__}: {error}"
        raise Refused(f"{path.name} is not a valid PyTorch program ({told[:200]})") from error


class _Reader:
    def __init__(self, archive: Archive, blobs: BlobStore, name: str) -> None:
        self._name = name
        self._archive = archive
        self._blobs = blobs
        module = archive.program()["graph_module"]
        self._graph = module["graph"]
        self._signature = module["signature"]
        self._tensors = archive.tensors()
        self._values: dict[str, Json] = {}  # what stands for a value of the graph: a reference
        self._constants: dict[str, str] = {}  # names in the module, by those in the graph
        self._put: dict[str, tuple[Weight, str]] = {}
        self._gives: dict[str, tuple[str, ...]] = {}  # values, by the layer that gives them
        self._aliases = Aliases(self._values)

    def read(self) -> ModelRead:
        inputs = list(self._inputs())
        names = Names([item.name for item in inputs], self._graph["nodes"])
        batch = self._batch(inputs)
        inputs = [Input(i.name, i.shape, i.dtype, self._axis(i.name, batch)) for i in inputs]
        layers = [
            layer
            for node in self._graph["nodes"]
            if (layer := self._layer(node, names, batch)) is not None
        ]
        outputs = tuple(r for value in self._shown for r in find_refs(self._values[value]))
        forms = {layer.name: self._specs(layer) for layer in layers}
        model = Model(self._name, tuple(inputs), tuple(layers), outputs, "torch_export")
        shapes = [list(self._form(value).shape) for value in self._shown]
        specs = {name: found for name, found in forms.items() if found is not None}
        return ModelRead(model=model, output_shapes=shapes, specs=specs)

    # What goes in and out.

    def _inputs(self) -> Iterator[Input]:
        for spec in self._signature["input_specs"]:
            ((kind, told),) = spec.items()
            known = {**_INPUTS, **_CONSTANT}
            if kind in known:
                self._constants[told["arg"]["name"]] = told[known[kind]]
            elif kind == "user_input":
                yield from self._input(told["arg"])
            elif kind != "constant_input":
                raise Refused(f"the program reads a {kind}, which is not supported")

    def _input(self, argument: Json) -> Iterator[Input]:
        ((kind, told),) = argument.items()
        if kind == "as_tensor":
            form = self._form(told["name"])
            self._values[told["name"]] = ref(told["name"])
            yield Input(told["name"], form.shape, form.dtype, None)
        elif kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            raise Refused("an input is a number, not a tensor; export it with a fixed one")

    @cached_property
    def _shown(self) -> list[str]:
        """The values that are given to the user: tensors; sizes and constants say nothing."""
        given = [spec.get("user_output", {}) for spec in self._signature["output_specs"]]
        tensors = [told["arg"]["as_tensor"] for told in given if "as_tensor" in told.get("arg", {})]
        found = [told["name"] for told in tensors if told["name"] not in self._constants]
        if not found:
            raise Refused("the program gives no tensor that it computes of its inputs")
        return found

    def _batch(self, inputs: Sequence[Input]) -> str | int | None:
        """The free first size of the inputs, if all outputs have it too; 1 where all begin so."""
        given = [self._form(item.name) for item in inputs]
        shown = [self._form(name) for name in self._shown]
        first = next((f.sizes[0] for f in given if f.sizes and isinstance(f.sizes[0], str)), None)
        if first is not None:
            return first if all(f.axis_of(first) is not None for f in shown) else None
        ends = [*given, *shown]
        one = all(f.sizes[:1] == (1,) and None not in f.shape for f in ends)
        return 1 if ends and one else None

    def _axis(self, value: str, batch: str | int | None) -> int | None:
        """Where the instances of a tensor lie."""
        if isinstance(batch, int):
            return 0
        return self._form(value).axis_of(batch)

    def _form(self, value: str) -> TensorForm:
        meta = self._graph["tensor_values"][value]
        dtype = SCALAR_TYPES.get(meta["dtype"])
        if dtype is None:
            raise Refused(
                f"the tensor {value!r} has a type that is not supported (complex, 8 bits)"
            )
        return TensorForm(tuple(_size(n) for n in meta["sizes"]), dtype)

    # Calls.

    def _layer(self, node: Json, names: Names, batch: str | int | None) -> Layer | None:
        """A call; None for one that gives nothing, such as an assertion."""
        target = str(node["target"])
        if not is_operator(target) and target not in SIZE_FUNCTIONS:
            raise Refused(f"the program calls {target[:100]!r}, which is no operator")
        if target.startswith("torch.ops.higher_order"):
            raise Refused(
                f"the program holds a sub-program ({kind_of(target)}), which is not supported; "
                "export it without torch.cond, loops, autocast and no_grad blocks"
            )
        given = dict(_given(node["outputs"]))
        if not given:
            return None
        encoder = _Encoder(self)
        told = {item["name"]: encoder.argument(item["arg"]) for item in node["inputs"]}
        label = names.of(node)
        kwargs = {name: value for name, value in told.items() if is_woven(value)}
        config = {name: value for name, value in told.items() if name not in kwargs}
        paths = list(given.values())
        learned = [n for n, w in enumerate(encoder.weights) if self._is_learned(w)]
        origin = {} if paths == [[]] else {PATHS: paths}
        self._gives[label] = tuple(given)
        for index, value in enumerate(given):
            if value:
                self._values[value] = ref(label, index)
        self._aliases.note(target, node, given, label)
        return Layer(
            label,
            kind_of(target),
            config,
            [],
            kwargs,
            weights=tuple(encoder.weights),
            origin={**origin, LEARNED: learned} if learned else origin,
            batch=tuple(self._given_axis(value, batch) for value in given),
        )

    def _is_learned(self, weight: Weight) -> bool:
        """A parameter that is not frozen."""
        _, told = self._tensors[weight.name]
        return bool(told["tensor_meta"].get("requires_grad"))

    def _given_axis(self, value: str, batch: str | int | None) -> int | None:
        if value not in self._graph["tensor_values"]:
            return None
        return self._axis(value, batch) if batch != 1 or value in self._shown else None

    def _specs(self, layer: Layer) -> tuple[Form, ...] | None:
        """What a layer gives, where all of it is known but the batch."""
        found = []
        for value, axis in zip(self._gives[layer.name], layer.batch, strict=True):
            if value not in self._graph["tensor_values"]:
                return None
            form = self._form(value)
            if any(n is None and place != axis for place, n in enumerate(form.shape)):
                return None
            found.append((form.shape, form.dtype))
        return tuple(found)

    # What an encoder asks.

    def value(self, name: str) -> Json | None:
        self._aliases.require_fresh(name)
        return self._values.get(name)

    def constant(self, name: str) -> tuple[Weight, str] | None:
        """A parameter, buffer or constant in the blob store; the same one is stored once."""
        if name not in self._constants:
            return None
        called = self._constants[name]
        if called not in self._put:
            if called not in self._tensors:
                raise Refused(f"the archive does not hold the tensor {called!r}")
            array, dtype = self._archive.array(called, *self._tensors[called])
            weight = Weight(called, self._blobs.put(array), tuple(array.shape))
            self._put[called] = (weight, dtype)
        return self._put[called]


@dataclass
class _Encoder:
    """Arguments of one call as plain data; collects its constants."""

    reader: _Reader
    weights: list[Weight] = field(default_factory=list)

    def argument(self, told: Mapping[str, Any]) -> Json:
        ((kind, value),) = told.items()
        if kind == "as_none":
            return None
        if kind in _PLAIN:
            return value
        if kind in ("as_float", "as_floats", "as_float_lists"):
            return _floats(value)
        if kind in ("as_tensor", "as_optional_tensor"):
            return self._tensor(value)
        if kind in ("as_tensors", "as_optional_tensors"):
            return [self._tensor(item) for item in value]
        if kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            return self._computed(value)
        if kind in ("as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return [self._computed(item) for item in value]
        if kind in _MARKED:
            mark, names = _MARKED[kind]
            if value not in names:
                raise Refused(f"an argument is {kind.removeprefix('as_')} {value}: not supported")
            return {mark: names[value]}
        if kind == "as_device":
            return {DEVICE: "cpu"}
        raise Refused(
            f"an argument is a {kind.removeprefix('as_')}, which is not supported"
            + ("; export without torch.cond, loops and no_grad blocks" * (kind == "as_graph"))
        )

    def _tensor(self, told: Mapping[str, Any]) -> Json:
        if "as_none" in told:
            return None
        name = told.get("as_tensor", told)["name"]
        known = self.reader.value(name)
        if known is not None:
            return known
        constant = self.reader.constant(name)
        if constant is None:
            raise Refused(f"a call reads the tensor {name!r}, which nothing gives")
        weight, dtype = constant
        if weight not in self.weights:
            self.weights.append(weight)
        place = {WEIGHT: self.weights.index(weight)}
        return {**place, "type": dtype} if dtype == "bfloat16" else place

    def _computed(self, told: Mapping[str, Any]) -> Json:
        if "as_name" not in told:
            (value,) = told.values()
            return value
        known = self.reader.value(told["as_name"])
        if known is None:
            raise Refused(f"a call reads the size {told['as_name']!r}, which nothing gives")
        return {SIZE: known}


_MARKED = {
    "as_scalar_type": (DTYPE, SCALAR_TYPES),
    "as_memory_format": (FORMAT, MEMORY_FORMATS),
    "as_layout": (LAYOUT, LAYOUTS),
}


def _floats(value: Any) -> Any:
    """Numbers that JSON has no word for are written as texts."""
    return [_floats(item) for item in value] if isinstance(value, list) else float(value)


def _given(outputs: Sequence[Json]) -> Iterator[tuple[str, list[int]]]:
    """The values that a call gives, and where they lie in what it returns."""
    for place, told in enumerate(outputs):
        ((kind, value),) = told.items()
        outer = [place] if len(outputs) > 1 else []
        if kind == "as_tensor":
            yield value["name"], outer
        elif kind == "as_tensors":
            for inner, item in enumerate(value):
                yield item["name"], [*outer, inner]
        elif kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            yield value["as_name"], outer
        elif kind != "as_none":
            raise Refused(f"a call gives a {kind.removeprefix('as_')}, which is not supported")


def _size(told: Mapping[str, Any]) -> Size:
    """A size: known, free by a name, or computed of others. Texts are never evaluated."""
    known = number(told)
    if known is not None:
        return int(known)
    found = _SYMBOL.fullmatch(str(told.get("as_expr", {}).get("expr_str", "")))
    return found[1] if found else None
