"""Who runs PyTorch programs: PyTorch in its modes, and others by a converter."""

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
from outvote.core.requirements import merged
from outvote.core.target import Target
from outvote.dialects.torch_export.nouns.kernels import (
    BORROWED_BY_DECOMPOSITIONS,
    BORROWED_BY_INDUCTOR,
    CONVOLUTIONS,
)
from outvote.dialects.torch_export.nouns.node import ref
from outvote.dialects.torch_export.nouns.twins import FILES
from outvote.targets.choose import missing_packages

PACKAGE = "torch"
OVERLAID: tuple[str, ...] = ()
RECIPES: Mapping[str, Recipe] = {}
_READS = frozenset({"read", "save", "watch", "step"})
_WIDE = frozenset({"float64", "versions"})
_TRAINS = frozenset({"pullback"})
_DIFFERENTIATE = ("eager", "decomposed", "aot_eager", "inductor", "dynamic")
_READER = "torch:eager"


def _torch(mode: str, library: str = "torch", **more: Any) -> Target:
    """PyTorch in a mode; its kernels are ATen's where it borrows them."""
    trains = _TRAINS if mode in _DIFFERENTIATE else frozenset()
    return Target(
        f"torch:{mode}",
        dialect="torch_export",
        worker="torch",
        library=library,
        mode=mode,
        packages=("torch",),
        package="torch",
        extra="torch",
        capabilities=_READS | _WIDE | trains,
        **more,
    )


def _compiled(mode: str) -> Target:
    """Kernels that Inductor writes."""
    return _torch(
        mode,
        library="inductor",
        costs=frozenset({"compiles", "compiles_slowly"}),
        borrows={"torch": BORROWED_BY_INDUCTOR},
    )


def _on_cuda(base: Target, device: str) -> Target:
    """The same on a GPU: other kernels, so a vote of its own; convolutions are cuDNN's."""
    here = "torch:cuda"
    borrowed = {here if library == "torch" else library: k for library, k in base.borrows.items()}
    return replace(
        base,
        name=f"{base.name}:{device}",
        mode=f"{base.mode}:{device}",
        library=here if base.library == "torch" else f"{base.library}:cuda",
        borrows={"cudnn": CONVOLUTIONS, **borrowed},
        defines=False,
        device="gpu",
        capabilities=base.capabilities - _TRAINS,
    )


def _converted(library: str, extra: str, *tools: str, **more: Any) -> Target:
    """Another library, which runs what a converter makes of a program."""
    return Target(
        f"{library}:torch",
        dialect="torch_export",
        worker=library,
        library=library,
        packages=("torch", *tools, library),
        package=library,
        extra=extra,
        costs=frozenset({"compiles", "loads_slowly"}),
        **more,
    )


def _twin(name: str, base: Target) -> Target:
    """What somebody makes of a program; it must agree with the program, and has no vote."""
    return replace(
        base,
        name=f"twin:torch:{name}",
        twin=name,
        original=_READER,
        library="torch",
        borrows={},
        capabilities=_READS,
        costs=base.costs | {"compiles"},
    )


_EAGER = _torch("eager", defines=True)
_INDUCTOR = _compiled("inductor")
# It takes float64, says float64, and computes in float32.
_OPENVINO = _converted("openvino", "torch,openvino", capabilities=_READS, feigns=("float64",))
_ORT = _converted("onnxruntime", "onnxscript", "onnxscript", capabilities=_READS | {"float64"})
_BY_XNNPACK = frozenset({"compiles", "compiles_slowly"})
# In an environment of its own: it brings much that nothing else here needs.
_EXECUTORCH = replace(
    _converted("executorch", "", capabilities=_READS, requirements=("executorch==1.5.1",)),
    library="xnnpack",
    costs=_BY_XNNPACK,
)
# Its own PyTorch: the one that it brings where nobody says so may be another.
_LITERT = replace(
    _converted(
        "litert",
        "",
        capabilities=_READS,
        requirements=("litert-torch==0.10.0", "torch==2.13.0"),
        feigns=("float64",),
    ),
    library="xnnpack",
    costs=_BY_XNNPACK,
    packages=("torch", "litert_torch"),
    package="litert-torch",
)
_TWINS = {
    **{name: replace(_torch(name), worker="twin") for name in FILES},
    "onnx": _ORT,
    "openvino": _OPENVINO,
    "litert": _LITERT,
    "compiled": _INDUCTOR,
}
BUILT_IN: Mapping[str, Target] = {
    target.name: target
    for target in (
        _EAGER,
        *(
            _torch(
                mode,
                library="torch's decompositions",
                borrows={"torch": BORROWED_BY_DECOMPOSITIONS},
            )
            for mode in ("decomposed", "symbolic")
        ),
        _torch("aot_eager", costs=frozenset({"compiles"})),
        *(_compiled(mode) for mode in ("inductor", "dynamic", "aoti")),
        _torch("script", costs=frozenset({"compiles"})),
        *(_on_cuda(base, device) for base in (_EAGER, _INDUCTOR) for device in ON_CUDA),
        _OPENVINO,
        _ORT,
        _EXECUTORCH,
        _LITERT,
        *(_twin(name, base) for name, base in _TWINS.items()),
    )
}
DEFAULT = SEARCHED = (_READER, "torch:decomposed", "openvino:torch")


def with_versions(base: Target, requirements: tuple[str, ...], name: str) -> Target:
    """A target with other releases, in an environment of its own; PyTorch brings no NumPy."""
    return replace(
        base,
        name=name,
        requirements=merged(base.requirements, requirements),
        packages=(*base.packages, "numpy"),
        plain=base.plain or base.name,
    )


def helpers(targets: Iterable[Target]) -> list[Target]:
    """A helper that reads programs where no target runs in this environment."""
    if any(not target.requirements and target.python is None for target in targets):
        return []
    reader = BUILT_IN[_READER]
    if missing_packages(reader):
        raise UsageError("PyTorch programs are read where torch is; pip install 'outvote[torch]'")
    return [replace(reader, name=f"{_READER} (reads the model)")]


def reading_order(target: Target) -> tuple[Any, ...]:
    """Who can, runs here, is as it was released, and starts quickest."""
    elsewhere = bool(target.requirements) or target.python is not None
    return (
        not target.can("read"),
        elsewhere,
        target.setup is not None,
        target.name != _READER,
        target.name,
    )


def probe() -> tuple[Model, list[Array], Array]:
    """The positive part of two numbers."""
    relu = Layer("y", "aten.relu", {}, [], {"self": ref("x")})
    inputs = (Input("x", (None, 2), "float32"),)
    model = Model("probe", inputs, (relu,), (Ref("y"),), "torch_export")
    return model, [np.array([[-1.0, 2.0]], np.float32)], np.array([[0.0, 2.0]], np.float32)
