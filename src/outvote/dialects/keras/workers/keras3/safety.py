"""Refuses what a model file has no business to bring: code, and classes from elsewhere.

Keras has a safe mode of its own, which stays on. This says no earlier, with the remedy, and knows
one thing more: which functions a layer may name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outvote.worker.main import Refused

_HOMES = ("keras", "builtins")
# Functions that configurations really name; others of Keras (downloads, file access) they do not.
_FUNCTION_HOMES = (
    "activations",
    "initializers",
    "regularizers",
    "constraints",
    "losses",
    "metrics",
    "ops",
    "random",
)


def refuse_code(spec: Any, custom: Mapping[str, Any]) -> None:
    """Raise Refused if a serialised Keras object would run code or needs a class from elsewhere."""
    if isinstance(spec, Mapping):
        _refuse_object(spec, custom)
        for key, value in spec.items():
            if key != "compile_config":  # models are never compiled here
                refuse_code(value, custom)
    elif isinstance(spec, list | tuple):
        for value in spec:
            refuse_code(value, custom)


def _refuse_object(spec: Mapping[str, Any], custom: Mapping[str, Any]) -> None:
    name, registered = spec.get("class_name"), spec.get("registered_name")
    if not isinstance(name, str):
        return
    if name in ("Lambda", "__lambda__"):
        raise Refused(
            f"the model holds Python code (a {name} object), which is not run by default; "
            "if you trust the file, add --allow-code"
        )
    if "module" not in spec:
        return
    wanted = spec.get("config") if name == "function" else registered or name
    if wanted in custom or name in custom:
        return
    parts = str(spec["module"] or "").split(".")
    if parts[0] not in _HOMES or (name == "function" and not set(parts) & set(_FUNCTION_HOMES)):
        raise Refused(
            f"the model holds the custom object {wanted!r}, which is not part of Keras' layers; "
            "give the file that defines it with --custom FILE.py"
        )
