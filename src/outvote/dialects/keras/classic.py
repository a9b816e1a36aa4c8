"""The papers' own libraries: Keras 2 on Theano and TensorFlow, and keras-mxnet on MXNet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from outvote.core.errors import UsageError
from outvote.core.requirements import name_of, pinned, version_of
from outvote.core.target import Target

_OLDEST, _NEWEST = "2.0.5", "2.3.1"


def _classic(backend: str, keras: str) -> Target:
    return Target(
        backend,
        dialect="keras",
        worker="keras2",
        library=backend,
        backend=backend,
        mode="graph",
        requirements=(keras,),
        recipe=backend,
        plain=backend,
        capabilities=frozenset({"step", "versions"}),
        costs=frozenset({"compiles", *(["compiles_for_minutes"] if backend == "theano" else [])}),
    )


# `tensorflow` is here for `keras==2.1.4/tensorflow`; the plain name is that of Keras 3.
_ON = {
    "theano": _classic("theano", "keras==2.3.1"),
    "mxnet": _classic("mxnet", "keras-mxnet==2.2.4.3"),
    "tensorflow": _classic("tensorflow", "keras==2.3.1"),
}
CLASSIC: Mapping[str, Target] = {name: _ON[name] for name in ("theano", "mxnet")}


def is_classic(requirements: tuple[str, ...]) -> bool:
    """Whether these requirements ask for a Keras before 3."""
    keras = keras_of(requirements)
    return keras is not None and version_of(keras).major < 3


def classic_of(base: Target, requirements: tuple[str, ...], name: str) -> Target:
    """The classic target in the place of a base, for a Keras before 3."""
    keras = keras_of(requirements) or ""
    if base.backend not in _ON or (base.worker != "keras2" and base.mode != "eager"):
        raise UsageError(
            f"target {name!r}: Keras {keras} runs on {', '.join(_ON)}, not on {base.name}"
        )
    if base.backend == "mxnet" and any(name_of(item) == "keras" for item in requirements):
        raise UsageError(f"target {name!r}: MXNet has a Keras of its own; ask for keras-mxnet==...")
    oldest, newest = version_of(_OLDEST), version_of(_NEWEST)
    if base.backend != "mxnet" and not oldest <= version_of(keras) <= newest:
        raise UsageError(
            f"target {name!r}: Keras {keras} is not supported; choose {_OLDEST} to {_NEWEST}, "
            "or 3.0 and later"
        )
    found = _ON[base.backend]
    return replace(
        found,
        python=base.python,
        env=base.env,
        setup=base.setup,
        library=base.library,
        config=base.config,
    )


def keras_of(requirements: Iterable[str]) -> str | None:
    """The pinned version of Keras, if there is one."""
    for item in requirements:
        if name_of(item) in ("keras", "keras-mxnet"):
            return pinned(item)
    return None
