"""The runtimes that understand ONNX graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.devices import ON_CUDA
from outvote.core.errors import UsageError
from outvote.core.model import Input, Layer, Model, Ref
from outvote.core.parts import Recipe
from outvote.core.requirements import merged, name_of, pinned, version_of
from outvote.core.target import Target
from outvote.dialects.onnx.nouns.node import Origin, ref, with_origin
from outvote.targets.choose import missing_packages

PACKAGE = ""  # each runtime has releases of its own
OVERLAID: tuple[str, ...] = ()
RECIPES: Mapping[str, Recipe] = {}
_READER = "onnx-reference"
_ALL = frozenset({"read", "save", "watch", "step", "attempt", "versions"})
_GRAPH = frozenset({"compiles"})
_DISTRIBUTIONS = {"cv2": "opencv-python-headless"}  # what pip calls a package
# The first releases that were built for NumPy 2; older ones do not say that they need NumPy 1.
_NUMPY_2 = {"onnxruntime": "1.19", "openvino": "2024.1", "opencv-python-headless": "4.10.0.84"}


def _runtime(
    name: str, package: str, *, wide: bool = False, costs: frozenset[str] = _GRAPH, **more: Any
) -> Target:
    """A runtime; `wide` ones compute in float64 what they are given in float64.

    Others take float64, say float64, and compute in float32.
    """
    return Target(
        name,
        dialect="onnx",
        library=package,
        packages=tuple(dict.fromkeys(("onnx", "onnx_ir", package))),
        package=_DISTRIBUTIONS.get(package, package),
        capabilities=_ALL | ({"float64"} if wide else set()),
        feigns=() if wide else ("float64",),
        costs=costs,
        **more,
    )


def _gpu(base: Target, mode: str, **more: Any) -> Target:
    """A runtime on a GPU: other kernels, so a vote of its own."""
    return replace(_mode(base, mode), library=f"{base.library}:gpu", device="gpu", **more)


def _mode(base: Target, mode: str) -> Target:
    return replace(base, name=f"{base.name}:{mode}", mode=mode, costs=base.costs | _GRAPH)


_ORT = _runtime(
    "onnxruntime",
    "onnxruntime",
    worker="onnxruntime",
    extra="onnx",
    wide=True,
    costs=frozenset(),
)
_OPENVINO = _runtime(
    "openvino:onnx",
    "openvino",
    worker="openvino",
    extra="onnx,openvino",
    costs=_GRAPH | {"loads_slowly"},
)
# What each transformation is made with; a twin must agree with its original on ONNX Runtime.
_TOOLS = {"simplified": "onnxsim", "slim": "onnxslim", "opset": "onnx"}
_BY_ONNXRUNTIME = ("fp16", "int8", "qdq", "optimised")
TWINS = (*_TOOLS, *_BY_ONNXRUNTIME)


def _twin(name: str) -> Target:
    tool = _TOOLS.get(name, _ORT.package)
    return replace(
        _ORT,
        name=f"twin:{name}",
        worker="twin",
        mode=name,
        twin=name,
        original=_ORT.name,
        packages=tuple(dict.fromkeys((*_ORT.packages, tool))),
        package=tool,
        extra="twins",
        capabilities=_ALL,
        costs=_GRAPH,
    )


def _converted(name: str, library: str, tool: str, costs: frozenset[str] = _GRAPH) -> Target:
    """Another library's kernels, into whose operations a tool turns the graph: the tool is asked
    for, and its faults are the target's; the vote is the library's."""
    base = _runtime(name, library, worker=tool, extra=tool, wide=True, costs=costs)
    return replace(base, packages=(*base.packages, tool), package=tool)


BUILT_IN: Mapping[str, Target] = {
    target.name: target
    for target in (
        _ORT,
        *(_mode(_ORT, level) for level in ("basic", "extended", "all")),
        _OPENVINO,
        _mode(_OPENVINO, "dynamic"),
        _mode(_OPENVINO, "fast"),
        *(_gpu(_ORT, mode, borrows={"cudnn": ("Conv*",)}) for mode in ON_CUDA),
        _gpu(_OPENVINO, "gpu"),
        _runtime("opencv", "cv2", worker="opencv", extra="opencv"),
        _runtime(_READER, "onnx", worker="reference", extra="onnx", wide=True, costs=frozenset()),
        _converted("torch:onnx", "torch", "onnx2torch", frozenset()),
        _converted("jax:onnx", "jax", "jaxonnxruntime", frozenset({"compiles_per_shape"})),
        *map(_twin, TWINS),
    )
}
DEFAULT = ("onnxruntime", "openvino:onnx", "opencv", _READER)
SEARCHED = ("onnxruntime", "opencv", _READER)


def with_versions(base: Target, requirements: tuple[str, ...], name: str) -> Target:
    """A target with other releases, in an environment of its own; it reads no files there."""
    asked = merged(base.requirements, requirements)
    needed = ("onnx", _DISTRIBUTIONS.get(base.library, base.library), base.package)
    return replace(
        base,
        name=name,
        requirements=merged(_numpy_for(asked), asked),
        packages=tuple(dict.fromkeys(needed)),
        plain=base.plain or base.name,
    )


def _numpy_for(asked: Iterable[str]) -> tuple[str, ...]:
    """What a release needs of NumPy and does not say."""
    versions = {name_of(item): pinned(item) for item in asked}
    old = [
        name
        for name, first in _NUMPY_2.items()
        if (version := versions.get(name)) and version_of(version) < version_of(first)
    ]
    return ("numpy<2",) if old else ()


def helpers(targets: Iterable[Target]) -> list[Target]:
    """A helper that reads and writes model files where no target runs in this environment."""
    if any(not target.requirements and target.python is None for target in targets):
        return []
    reader = BUILT_IN[_READER]
    if missing_packages(reader):
        raise UsageError("reading ONNX files takes onnx and onnx_ir; pip install 'outvote[onnx]'")
    return [replace(reader, name=f"{_READER} (reads the model)")]


def reading_order(target: Target) -> tuple[Any, ...]:
    """Who runs here, is as it was released, and starts quickest."""
    elsewhere = bool(target.requirements) or target.python is not None
    return (elsewhere, target.setup is not None, target.worker != "reference", target.name)


def probe() -> tuple[Model, list[Array], Array]:
    """The positive part of two numbers."""
    relu = with_origin(Layer("y", "Relu", {}, [ref("x")], batch=(None,)), Origin({"": 17}))
    model = Model("probe", (Input("x", (1, 2), "float32", None),), (relu,), (Ref("y"),), "onnx")
    return model, [np.array([[-1.0, 2.0]], np.float32)], np.array([[0.0, 2.0]], np.float32)
