"""Layers of a neutral Model, which speaks Keras 3, in the vocabulary of Keras 2.

A layer or a parameter that did not exist then raises NotImplementedError: a gap of that version.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import backend as K  # noqa: N812 - its name in all code of Keras 2
from keras import layers

Config = dict[str, Any]

# Parameters of Keras 3 that Keras 2 may lack, and the values at which they change nothing.
_LATER: Mapping[str, tuple[Any, ...]] = {
    "activity_regularizer": (None,),
    "autocast": (True,),
    "cudnn_compatible": (False,),
    "data_format": ("channels_last", None),
    "dilation_rate": (1, [1], [1, 1], [1, 1, 1]),
    "groups": (1,),
    "interpolation": ("nearest",),
    "keepdims": (False,),
    "lora_alpha": (None,),
    "lora_rank": (None,),
    "negative_slope": (0.0,),
    "quantization_config": (None,),
    "renorm": (False,),
    "renorm_clipping": (None,),
    "renorm_momentum": (0.99,),
    "reset_after": (False,),
    "sparse": (False,),
    "synchronized": (False,),
    "threshold": (0.0,),
    "use_cudnn": ("auto", False, None),
    "zero_output_for_mask": (False,),
}
# `stateful`: every call begins with zeros here, and Keras 2 wants a fixed batch for it.
_NEVER_MATTERS = ("dtype", "trainable", "seed", "name", "stateful")
_IN_TRAINING_ONLY = ("_regularizer", "_constraint")
# Keras 3 gave these names to other functions than Keras 2.
_OTHER_FUNCTION = ("hard_sigmoid", "hard_silu", "hard_swish", "gelu")


def make(kind: str, module: str | None, config: Mapping[str, Any]) -> Any:
    """The layer of Keras 2, without weights; something callable that has its name."""
    if module != "keras.layers":
        raise NotImplementedError(f"{module}.{kind} is not a layer that Keras 2 could have")
    _only_float32(kind, config.get("dtype"))
    changed = _TRANSLATIONS.get(kind, _same)(dict(config))
    if not isinstance(changed, dict):
        return changed
    found = _class(kind)
    known = _parameters(found)
    return found(**{key: _value(key, value) for key, value in _taken(kind, changed, known)})


def _taken(kind: str, config: Config, known: frozenset[str]) -> list[tuple[str, Any]]:
    kept = []
    for key, value in config.items():
        if key in _NEVER_MATTERS or key.endswith(_IN_TRAINING_ONLY):
            continue
        if key in known:
            kept.append((key, value))
        elif value not in _LATER.get(key, ()):
            raise NotImplementedError(f"{kind} of {_keras()} has no {key}={value!r}")
    return kept


def _value(key: str, value: Any) -> Any:
    """One parameter: weights are set anyway, so that initialisers cost nothing."""
    if key.endswith("_initializer"):
        return "zeros"
    if key.endswith("activation"):
        return _activation(value)
    if key in ("layer", "backward_layer") and isinstance(value, Mapping):
        return make(value["class_name"], value.get("module"), value["config"])
    return tuple(value) if isinstance(value, list) else value


def _activation(value: Any) -> Any:
    if value is None:
        return None
    name = value if isinstance(value, str) else None
    if name is None or name in _OTHER_FUNCTION:
        raise NotImplementedError(f"{_keras()} has no activation {name or value!r}")
    try:
        return keras.activations.get(name)
    except ValueError:
        raise NotImplementedError(f"{_keras()} has no activation {name!r}") from None


def _class(kind: str) -> Any:
    found = getattr(layers, kind, None)
    if found is None and kind == "DepthwiseConv2D":
        # Until 2.1.5 it lived in the one application that used it.
        found = getattr(getattr(keras.applications, "mobilenet", None), kind, None)
    if found is None:
        raise NotImplementedError(f"{_keras()} has no layer {kind}")
    return found


def _parameters(found: Any) -> frozenset[str]:
    return frozenset(
        name
        for base in found.__mro__
        if "__init__" in vars(base) and base.__module__.startswith("keras.")
        if base.__name__ != "Layer"
        for name in inspect.signature(vars(base)["__init__"]).parameters
    )


def _only_float32(kind: str, dtype: Any) -> None:
    if isinstance(dtype, Mapping):
        dtype = dtype["config"].get("name")
    if dtype not in (None, "float32", "int32", "bool"):
        raise NotImplementedError(f"{kind} in {dtype} is not translated to {_keras()}")


def _keras() -> str:
    return f"Keras {keras.__version__}"


def _same(config: Config) -> Config:
    return config


def _relu(config: Config) -> Any:
    """Keras 2 before 2.2 had no such layer: its models call the backend's function."""
    if hasattr(layers, "ReLU") and "threshold" in _parameters(layers.ReLU):
        return config
    if config.get("threshold"):
        raise NotImplementedError(f"{_keras()} has no ReLU with a threshold")
    slope, top = config.get("negative_slope") or 0.0, config.get("max_value")
    return layers.Activation(lambda x: K.relu(x, alpha=slope, max_value=top))


def _softmax(config: Config) -> Any:
    if hasattr(layers, "Softmax"):
        return config
    if config.get("axis", -1) != -1:
        raise NotImplementedError(f"{_keras()} has no Softmax over axis {config['axis']}")
    return layers.Activation("softmax")


def _leaky_relu(config: Config) -> Config:
    return {"alpha": config["negative_slope"]}


def _batch_normalization(config: Config) -> Config:
    axis = config.get("axis", -1)
    return {**config, "axis": axis[0] if isinstance(axis, list) and len(axis) == 1 else axis}


def _global_pool(reduce: str, axes: int) -> Callable[[Config], Any]:
    def translate(config: Config) -> Any:
        if not config.get("keepdims"):
            return config
        first = config.get("data_format") == "channels_first"
        over = list(range(2, 2 + axes) if first else range(1, 1 + axes))
        function = getattr(K, reduce)

        def shape(given: Any) -> Any:
            return tuple(1 if place in over else n for place, n in enumerate(given))

        return layers.Lambda(lambda x: function(x, axis=over, keepdims=True), output_shape=shape)

    return translate


_TRANSLATIONS: Mapping[str, Callable[[Config], Any]] = {
    "BatchNormalization": _batch_normalization,
    "GlobalAveragePooling1D": _global_pool("mean", 1),
    "GlobalAveragePooling2D": _global_pool("mean", 2),
    "GlobalAveragePooling3D": _global_pool("mean", 3),
    "GlobalMaxPooling1D": _global_pool("max", 1),
    "GlobalMaxPooling2D": _global_pool("max", 2),
    "GlobalMaxPooling3D": _global_pool("max", 3),
    "LeakyReLU": _leaky_relu,
    "ReLU": _relu,
    "Softmax": _softmax,
}
