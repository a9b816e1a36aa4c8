"""Refuses what a model file has no business to bring: code, paths, and classes from elsewhere.

Keras has a safe mode of its own, which stays on; older versions of it had holes. This says no
earlier, with the remedy, and by lists of what may be, wherever there can be such a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outvote.worker.main import Refused

# Layers that carry a program: marshalled, pickled, or in a folder that they name.
_CODE = (
    *("Lambda", "__lambda__", "TorchModuleWrapper", "TFSMLayer", "JaxLayer", "FlaxLayer"),
    *("TFLayer", "__typespec__"),
)
# Parts of Keras whose classes a configuration may name; others read files or open connections.
_CLASS_HOMES = (
    *("activations", "applications", "constraints", "dtype_policies", "initializers", "layers"),
    *("models", "ops", "quantizers", "random", "regularizers"),
)
# Functions that configurations really name; others of Keras (downloads, file access) they do not.
_FUNCTION_HOMES = (
    *("activations", "initializers", "regularizers", "constraints", "losses", "metrics"),
    *("ops", "random"),
)
# Parameters that are lists; as a text each is the path of a file, which would be read.
_PATHS = ("vocabulary", "idf_weights", "filepath")


def refuse_code(spec: Any, custom: Mapping[str, Any]) -> None:
    """Raise Refused if a serialised Keras object would run code or needs a class from elsewhere."""
    if isinstance(spec, str):
        _refuse_halves(spec)
    elif isinstance(spec, Mapping):
        _refuse_object(spec, custom)
        for key, value in spec.items():
            _refuse_halves(str(key))
            if key in _PATHS and isinstance(value, str):
                raise Refused(
                    f"the model names a file ({key}={value!r}), which is not read; save it with "
                    "the content instead"
                )
            refuse_code(value, custom)
    elif isinstance(spec, list | tuple):
        for value in spec:
            refuse_code(value, custom)


def _refuse_halves(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused(
            f"the model holds text that no encoding can write ({text!r}); give its layers other "
            "names"
        ) from None


def _refuse_object(spec: Mapping[str, Any], custom: Mapping[str, Any]) -> None:
    name = spec.get("class_name")
    if not isinstance(name, str):
        return
    if name in _CODE:
        raise Refused(
            f"the model holds Python code (a {name} object), which is not run by default; "
            "if you trust the file, add --allow-code"
        )
    if "module" not in spec:
        return
    wanted = str(spec.get("config") if name == "function" else spec.get("registered_name") or name)
    if wanted in custom or name in custom:
        return
    package, *parts = str(spec["module"] or "").split(".")
    homes = _FUNCTION_HOMES if name == "function" else _CLASS_HOMES
    if package != "keras" or (parts and not set(parts) & set(homes)):
        raise Refused(
            f"the model holds the custom object {wanted!r}, which is not part of Keras' layers; "
            "give the file that defines it with --custom FILE.py"
        )
    if name == "function" and not parts:
        raise Refused(
            f"the model names the function {wanted!r} of Keras itself, which is no part of a "
            "layer; save it again with Keras"
        )
