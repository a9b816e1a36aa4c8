"""What ONNX' schemas say of operators."""

from __future__ import annotations

from typing import Any

import onnx

from outvote.core.model import Layer
from outvote.dialects.onnx.nouns.node import operator_of, opset_of

_KINDS = onnx.AttributeProto
_PLAIN = (_KINDS.INT, _KINDS.FLOAT, _KINDS.STRING, _KINDS.INTS, _KINDS.FLOATS, _KINDS.STRINGS)


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
    told = {name: found.default_value for name, found in schema.attributes.items()}
    return {name: _value(found) for name, found in told.items() if found.type in _PLAIN}


def _value(attribute: Any) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, int | float):
        return value
    return [one.decode() if isinstance(one, bytes) else one for one in value]
