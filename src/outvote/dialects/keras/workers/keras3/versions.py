"""Lets one model run on many versions of Keras 3: what an older one does not know is left out.

A parameter that was added later and stands at its default changes nothing, so it can go. A layer
that was added later cannot be had: that is a gap of the version, not an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import keras

# Parameters that Keras 3 gained after 3.0, and the values at which they change nothing.
_LATER: Mapping[str, tuple[Any, ...]] = {
    "antialias": (False,),
    "bounding_box_format": (None,),
    "data_format": (None, "channels_last"),
    "factor": (None,),
    "flash_attention": (None, False),
    "gptq_unpacked_column_size": (None,),
    "input_axes": (None,),
    "lora_alpha": (None,),
    "oov_method": ("floormod",),
    "optional": (False,),
    "output_axes": (None,),
    "quantization_config": (None,),
    "ragged": (None, False),
    "renorm": (False,),
    "renorm_clipping": (None,),
    "renorm_momentum": (0.99,),
    "salt": (None,),
    "sliding_window": (None,),
    "use_gate": (False,),
}
# Parameters whose default is another one in older versions, and what tells such a version. At
# today's default they are left out, so that each version takes its own: Discretization computed in
# int64 before 3.12.
_OTHER_DEFAULT: Mapping[str, tuple[str, Callable[[], bool]]] = {
    "Discretization": ("dtype", lambda: not hasattr(keras.layers.Discretization, "output_dtype")),
}
# The seed of a layer that draws numbers in training only, and what an operation is called.
_NEVER_MATTERS = ("seed", "name")


def fitted(spec: Any) -> Any:
    """A serialised object without the later parameters that this Keras does not take."""
    if isinstance(spec, list | tuple):
        return [fitted(item) for item in spec]
    if not isinstance(spec, Mapping):
        return spec
    result = {key: fitted(value) for key, value in spec.items()}
    config, module = result.get("config"), str(result.get("module") or "")
    if isinstance(config, dict) and module.startswith("keras."):
        known = _parameters(module, str(result.get("class_name")))
        if known is not None:
            result["config"] = {
                key: value
                for key, value in config.items()
                if key in known or not _changes_nothing(key, value)
            }
            _drop_default(str(result["class_name"]), result["config"])
    return result


def _drop_default(kind: str, config: dict[str, Any]) -> None:
    key, is_older = _OTHER_DEFAULT.get(kind, ("", bool))
    if key in config and is_older() and _policy(config[key]) == keras.config.floatx():
        del config[key]


def _policy(dtype: Any) -> Any:
    """The name of a serialised dtype policy, or of a dtype that stands there plainly."""
    return dtype["config"].get("name") if isinstance(dtype, Mapping) else dtype


def _changes_nothing(key: str, value: Any) -> bool:
    return key in _NEVER_MATTERS or value in _LATER.get(key, ())


@lru_cache(maxsize=512)
def _parameters(module: str, name: str) -> frozenset[str] | None:
    """What the constructor of a public class takes; None where that cannot be told."""
    home: Any = keras
    for part in module.split(".")[1:]:
        home = getattr(home, part, None)
    found = getattr(home, name, None)
    if found is None and module == "keras.layers":
        raise NotImplementedError(f"Keras {keras.__version__} has no layer {name}")
    if not inspect.isclass(found):
        return None
    known: set[str] = set()
    for base in found.__mro__:
        if "__init__" in vars(base):
            parameters = inspect.signature(vars(base)["__init__"]).parameters
            known.update(parameters)
            if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
                break  # it hands on no others to its base
    return frozenset(known)
