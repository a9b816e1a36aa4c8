"""What ONNX' schemas say of operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import onnx

from outvote.core.model import Layer
from outvote.dialects.onnx.nouns.node import kind_of, operator_of, opset_of
from outvote.dialects.onnx.nouns.operators import AttributeSchema, Operator, Slot

_KINDS = onnx.AttributeProto
_PLAIN = (_KINDS.INT, _KINDS.FLOAT, _KINDS.STRING, _KINDS.INTS, _KINDS.FLOATS, _KINDS.STRINGS)
_TENSOR = "tensor("
# Types that ONNX' schemas call otherwise than we, who call them as NumPy and its extension do.
_RENAMED = {
    "float": "float32",
    "double": "float64",
    "float4e2m1": "float4_e2m1fn",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
}
_OPTIONS = {
    onnx.defs.OpSchema.FormalParameterOption.Single: "single",
    onnx.defs.OpSchema.FormalParameterOption.Optional: "optional",
    onnx.defs.OpSchema.FormalParameterOption.Variadic: "variadic",
}
_MAIN = ("", "ai.onnx")


def schema_of(layer: Layer) -> Any:
    """The schema of a node's operator in its opset; None where ONNX has none."""
    domain, operator = operator_of(layer.kind)
    try:
        return onnx.defs.get_schema(operator, opset_of(layer), domain)
    except onnx.defs.SchemaError:
        return None


def defaults_of(layer: Layer) -> dict[str, Any]:
    """The attributes of a node that have a default, and it."""
    schema = schema_of(layer)
    if schema is None:
        return {}
    found = {name: _default(attribute) for name, attribute in schema.attributes.items()}
    return {name: value for name, value in found.items() if value is not None}


def operators(opset: int = 0) -> dict[str, Operator]:
    """The operators by kind: of ONNX' own set in a version, or all in their newest one."""
    return {kind_of(s.domain, s.name): operator_from(s) for s in _current(opset)}


def operator_from(schema: Any) -> Operator:
    """A schema as plain data."""
    return Operator(
        name=schema.name,
        domain=schema.domain,
        since=schema.since_version,
        versions=_versions()[schema.domain, schema.name],
        deprecated=schema.deprecated,
        inputs=tuple(_slot(schema, told) for told in schema.inputs),
        outputs=tuple(_slot(schema, told) for told in schema.outputs),
        attributes=tuple(
            AttributeSchema(name, found.type.name, found.required, _default(found))
            for name, found in sorted(schema.attributes.items())
        ),
    )


def _current(opset: int) -> Iterator[Any]:
    for domain, name in sorted(_versions()):
        if not opset:
            yield onnx.defs.get_schema(name, domain)
        elif domain in _MAIN and min(_versions()[domain, name]) <= opset:
            yield onnx.defs.get_schema(name, opset, domain)


@cache
def _versions() -> Mapping[tuple[str, str], tuple[int, ...]]:
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        found[schema.domain, schema.name].append(schema.since_version)
    return {key: tuple(sorted(versions)) for key, versions in found.items()}


def _slot(schema: Any, told: Any) -> Slot:
    """A place for a tensor. (onnx 1.20 cannot tell `told.types`.)"""
    named = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    types = tuple(sorted(map(_type_name, named.get(told.type_str, [told.type_str]))))
    return Slot(told.name, told.type_str, types, _OPTIONS[told.option], told.is_homogeneous)


def _type_name(told: str) -> str:
    """As we call the type of a tensor; sequences, optionals and maps keep their names."""
    if not told.startswith(_TENSOR):
        return told
    name = told.removeprefix(_TENSOR).removesuffix(")")
    return _RENAMED.get(name, name)


def _default(attribute: Any) -> Any:
    """The default of an attribute; None where it has none that is plain data."""
    told = attribute.default_value
    return _value(told) if told.type in _PLAIN else None


def _value(attribute: Any) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, int | float):
        return value
    return [one.decode() if isinstance(one, bytes) else one for one in value]
