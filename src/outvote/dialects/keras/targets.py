"""The targets that understand Keras models: Keras 3 on each backend and mode, and Keras 2."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.core.requirements import merged, version_of
from outvote.core.target import Target
from outvote.dialects.keras.classic import CLASSIC, classic_of, is_classic, keras_of
from outvote.dialects.keras.nouns.devices import GPU_MODES, HIGHEST
from outvote.dialects.keras.recipes import RECIPES
from outvote.targets.choose import install_hint, missing_packages

__all__ = ["RECIPES"]

PACKAGE = "keras"
REFERENCE = "reference"  # our own formulas: they read no files, and no script can show them
OVERLAID = ("keras", "keras-mxnet")
# Keras' NumPy backend calls JAX for these: there it has no vote of its own.
_NUMPY_BORROWS = {"jax": ("*Conv*", "*STFT*", "*FFT*", "MaxPooling*", "AveragePooling*")}


_KERAS3 = frozenset(
    {"read", "save", "make", "attempt", "ranges", "watch", "step", "versions", "trace"}
)
_TRAINS = frozenset({"gradients", "train", "pullback"})


def _keras(
    name: str,
    needs: str | None = None,
    can: frozenset[str] = frozenset({"float64"}),
    costs: frozenset[str] = frozenset(),
    **more: Any,
) -> Target:
    """Keras 3 on the backend of that name; `needs` is the package it stands on."""
    needs = needs or name
    return Target(
        name,
        dialect="keras",
        worker="keras3",
        library=name,
        backend=name,
        packages=("keras", needs),
        extra=needs,
        capabilities=_shown(_KERAS3 | can, costs),
        costs=costs,
        **more,
    )


def _shown(capabilities: frozenset[str], costs: frozenset[str]) -> frozenset[str]:
    """A graph that is compiled as a whole shows no hidden layers, and no calls."""
    return capabilities - {"watch", "trace"} if "compiles" in costs else capabilities


_WIDE_AND_TRAINS = _TRAINS | {"float64"}
_TENSORFLOW = _keras("tensorflow", can=_WIDE_AND_TRAINS, costs=frozenset({"differentiates_slowly"}))
_JAX = _keras("jax", can=_WIDE_AND_TRAINS, costs=frozenset({"compiles_per_shape"}))
_TORCH = _keras("torch", can=_WIDE_AND_TRAINS)
_NUMPY = _keras("numpy", needs="jax", borrows=_NUMPY_BORROWS)
_OPENVINO = replace(
    _keras("openvino", can=frozenset(), costs=frozenset({"compiles"}), feigns=("float64",)),
    packages=("keras", "openvino", "scipy"),  # Keras' backend imports SciPy, and does not bring it
)


_GRAPH = frozenset({"compiles"})


def _twin(name: str, base: Target, *needs: str, slow: bool = False) -> Target:
    """What somebody makes of a model; it must agree with Keras itself, and has no vote."""
    return replace(
        base,
        name=f"twin:keras:{name}",
        worker="twin",
        mode=name,
        twin=name,
        original=base.name,
        packages=(*base.packages, *needs),
        package="keras",
        extra=",".join(dict.fromkeys((base.extra, *(_EXTRAS.get(need, need) for need in needs)))),
        capabilities=frozenset({"read", "save", "step"}),
        costs=base.costs | _GRAPH | ({"compiles_slowly"} if slow else set()),
    )


_EXTRAS = {"onnx": "onnx", "onnxruntime": "onnx"}  # what brings a package
_TWINS = (
    *(_twin(name, _JAX) for name in ("fp16", "bf16", "int8")),
    _twin("onnx", _TORCH, "onnx", "onnxruntime", slow=True),
    _twin("openvino", _TENSORFLOW, "openvino", slow=True),
    _twin("litert", _TENSORFLOW, slow=True),
    _twin("saved_model", _TENSORFLOW, slow=True),
)


def _mode(
    base: Target, mode: str, library: str | None = None, costs: frozenset[str] = _GRAPH
) -> Target:
    """Another mode of a backend, which mostly compiles a model as one graph."""
    return replace(
        base,
        name=f"{base.name}:{mode}",
        mode=mode,
        library=library or base.library,
        capabilities=_shown(base.capabilities, costs),
        costs=base.costs | costs,
    )


def _predicting(target: Target) -> Target:
    """`model.predict` is no way to gradients."""
    return replace(target, capabilities=target.capabilities - {"pullback"})


def _gpu(base: Target, more: str) -> Target:
    """A backend on a GPU: other kernels, so a vote of its own; convolutions are all cuDNN's."""
    mode = GPU_MODES[base.backend]
    found = _mode(base, mode + more, f"{base.name}:{mode}", costs=frozenset())
    return replace(found, borrows={"cudnn": ("*Conv*",)}, device="gpu")


_MODERN: Mapping[str, Target] = {
    target.name: target
    for target in (
        _TENSORFLOW,
        _mode(_TENSORFLOW, "graph"),
        _mode(_TENSORFLOW, "xla", library="jax"),  # both compile through XLA: one vote
        _mode(_TENSORFLOW, "no-onednn", costs=frozenset()),
        _JAX,
        _mode(_JAX, "jit"),
        _TORCH,
        _mode(_TORCH, "compile", costs=_GRAPH | {"compiles_slowly"}),
        *(_gpu(base, more) for base in (_TENSORFLOW, _JAX, _TORCH) for more in ("", HIGHEST)),
        _NUMPY,
        _OPENVINO,
        _mode(_OPENVINO, "dynamic"),
        _mode(_OPENVINO, "fast"),
        replace(_mode(_OPENVINO, "gpu", "openvino:gpu"), device="gpu"),
        *_TWINS,
        # Keras has TensorFlow compile by XLA where it can.
        _predicting(_mode(_TENSORFLOW, "predict", library="jax")),
        *(_predicting(_mode(base, "predict")) for base in (_JAX, _TORCH, _NUMPY, _OPENVINO)),
        Target(
            REFERENCE,
            dialect="keras",
            worker=REFERENCE,
            library=REFERENCE,
            is_wider=True,
            capabilities=frozenset({"watch", "step", "float64"}),
        ),
        Target(
            "fake",
            dialect="keras",
            worker="fake",
            library="fake",
            capabilities=_KERAS3 - {"versions", "trace"},
        ),
    )
}
_READERS = {
    name: replace(_MODERN[name], name=f"{name} (reads the model)")
    for name in ("jax", "torch", "tensorflow", "openvino")
}
BUILT_IN = {**_MODERN, **CLASSIC}
DEFAULT = ("tensorflow", "jax", "torch", "openvino")
SEARCHED = ("tensorflow", "jax", "torch")
_QUICK_READERS = ("torch", "jax", "numpy", "tensorflow")


def helpers(targets: Iterable[Target]) -> list[Target]:
    """A helper that reads and writes model files where no target is the installed Keras.

    An older Keras does not read what a newer one wrote, and Keras 2 has another format.
    """
    chosen = [target for target in targets if target.worker != REFERENCE]
    if any(t.worker != "keras2" and keras_of(t.requirements) is None for t in chosen):
        return []
    found = [_READERS[name] for name in _READERS if not missing_packages(_MODERN[name])]
    if not found and all(target.worker == "keras2" for target in chosen):
        raise UsageError(
            f"classic targets need an installed Keras 3 that reads the model; {install_hint('jax')}"
        )
    return found[:1]


def with_versions(base: Target, requirements: tuple[str, ...], name: str) -> Target:
    """A target with other versions of its packages, under another name."""
    asked = merged(base.requirements, requirements)
    if not base.can("versions"):
        raise UsageError(f"target {name!r}: {base.name} has no versions to choose from")
    if is_classic(asked) and base.worker != "keras2":
        classic = classic_of(base, asked, name)
        base, asked = classic, merged(classic.requirements, asked)
    elif base.worker == "keras2" and not is_classic(asked):
        raise UsageError(f"target {name!r}: Keras 3 has no backend {base.backend!r}")
    elif base.worker == "keras2":
        base = classic_of(base, asked, name)
    return replace(base, name=name, requirements=asked, plain=base.plain or base.name)


def reading_order(target: Target) -> tuple[Any, ...]:
    """Keras 3 reads, released before patched, and newest first: it knows the older forms too."""
    keras = keras_of(target.requirements)
    age = [-n for n in version_of(keras).release] if keras else [-math.inf]
    quick = _QUICK_READERS.index(target.backend) if target.backend in _QUICK_READERS else 9
    patched = target.setup is not None
    unable = target.worker in ("keras2", REFERENCE)
    return (unable, patched, target.mode != "eager", age, quick)


def probe() -> tuple[Model, list[Array], Array]:
    """The positive part of two numbers."""
    relu = Layer(
        "relu",
        "ReLU",
        {"name": "relu"},
        args=[{REF: ["x", 0]}],
        origin={"module": "keras.layers"},
    )
    inputs = (Input("x", (None, 2), "float32"),)
    model = Model("probe", inputs, (relu,), (Ref("relu"),), "keras")
    return model, [np.array([[-1.0, 2.0]], np.float32)], np.array([[0.0, 2.0]], np.float32)
