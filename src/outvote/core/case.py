"""Inputs and ground truth for a model: from an `.npz` file, from arrays, or made at random."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from outvote.core.arrays import Array
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.instances import by_instance, count_of, taken
from outvote.core.model import Input, Model
from outvote.core.truth import Truth

_FREE_DIMENSION = 16  # size given to a free dimension of random inputs
_KINDS = "buif"


@dataclass(frozen=True)
class Data:
    """What the model is fed (one array per input) and, if known, what it should answer."""

    inputs: tuple[Array, ...]
    truth: Array | None
    source: str

    axes: tuple[int | None, ...]  # the batch axis of each input

    @property
    def count(self) -> int:
        return count_of(self.inputs, self.axes)

    def take(self, indices: Sequence[int]) -> tuple[Array, ...]:
        pairs = zip(self.inputs, self.axes, strict=True)
        return tuple(taken(item, axis, indices) for item, axis in pairs)

    def take_one(self, indices: Sequence[int]) -> tuple[Array, ...]:
        """The first of these inputs, or of all; none where there is none."""
        return self.take((list(indices[:1]) or [0]) if self.count else [])


@dataclass(frozen=True)
class Case:
    """A model, what it is fed, and what it should answer."""

    model: Model
    output_shapes: Sequence[Sequence[int | None]]
    data: Data
    truth: Truth


def balanced_batch(count: int, limit: int) -> int:
    """The largest batch up to the limit that divides the inputs evenly, if one is not too small.

    A smaller last batch has another shape, for which compilers start again.
    """
    if count <= limit:
        return count
    even = next(size for size in range(limit, 0, -1) if count % size == 0)
    return even if even >= limit // 2 else limit


def load_data(path: Path) -> dict[str, Array]:
    """The arrays of an `.npz` file; objects inside it are never unpickled."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise UsageError(f"{path} is a single array; save it with np.savez(path, x=...)")
        with loaded as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise UsageError(f"the data file {path} does not exist") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"{path} is not a readable .npz file: {error}") from error


def fit(
    arrays: Mapping[str, Array],
    model: Model,
    source: str,
    allow_nan: bool,
    allow_empty: bool | None = None,  # None: not to be had
) -> Data:
    """Arrays in the order and types of the model's inputs; whatever does not fit is refused."""
    names = _input_names(arrays, model, source)
    inputs = tuple(
        _fit_input(arrays[name], name, item, allow_nan)
        for name, item in zip(names, model.inputs, strict=True)
    )
    axes = tuple(item.batch for item in model.inputs)
    count = count_of(inputs, axes)
    if count == 0 and not allow_empty:
        hint = "" if allow_empty is None else ", or --allow-empty if that is what you test"
        raise UsageError(
            f"{source} holds no inputs: {names[0]} has shape {inputs[0].shape}; add some{hint}"
        )
    for name, array, axis in zip(names, inputs, axes, strict=True):
        if axis is not None and array.shape[axis] != count:
            raise UsageError(f"{names[0]} has {count} instances but {name} has {array.shape[axis]}")
    truth = arrays.get("y") if count else None  # of an empty batch nothing is known
    if truth is not None:
        truth = _fit_truth(np.asarray(truth), count)
    return Data(inputs, truth, source, axes)


def random_data(model: Model, count: int, seed: int) -> Data:
    """Normal numbers, or small integers where the model wants integers (it said no range)."""
    rng = np.random.default_rng(seed)
    inputs = []
    for item in model.inputs:
        shape = [
            count if axis == item.batch else n or _FREE_DIMENSION
            for axis, n in enumerate(item.shape)
        ]
        if "float" in item.dtype:
            inputs.append(rng.normal(size=shape).astype(_numpy_name(item.dtype)))
        else:
            most = dialect(model.dialect).layers.vocabulary(model, item)
            inputs.append(rng.integers(0, most, shape).astype(item.dtype))
    return Data(tuple(inputs), None, "random", tuple(item.batch for item in model.inputs))


def _input_names(arrays: Mapping[str, Array], model: Model, source: str) -> list[str]:
    count = len(model.inputs)
    numbered = [f"x{i}" for i in range(count)]
    named = [item.name for item in model.inputs]
    for names in (["x"] if count == 1 else [], numbered, named):
        if names and all(name in arrays for name in names):
            return names
    wanted = "x" if count == 1 else ", ".join(numbered)
    held = ", ".join(sorted(arrays)) or "nothing"
    raise UsageError(
        f"the model has {count} input{'s' * (count > 1)}, so {source} must hold {wanted}; "
        f"it holds {held}"
    )


def _fit_input(array: Array, name: str, item: Input, allow_nan: bool) -> Array:
    wanted = item.shape
    if array.dtype.kind not in _KINDS:
        raise UsageError(f"{name} has dtype {array.dtype}; the model takes numbers ({item.dtype})")
    fits = array.ndim == len(wanted) and all(
        n is None or n == m or axis == item.batch
        for axis, (n, m) in enumerate(zip(wanted, array.shape, strict=True))
    )
    if not fits:
        raise UsageError(
            f"{name} has shape {_shape(array.shape)}, but the model's input {item.name!r} takes "
            f"{_shape(wanted)}; reshape the data"
        )
    target = np.dtype(_numpy_name(item.dtype))
    if target.kind in "iub" and array.dtype.kind == "f":
        if not np.array_equal(array, np.round(array)):
            raise UsageError(
                f"{name} has dtype {array.dtype} with fractions, but the model's input "
                f"{item.name!r} takes {item.dtype}"
            )
    elif not allow_nan and array.dtype.kind == "f" and not np.isfinite(array).all():
        raise UsageError(
            f"{name} holds NaN or infinity (first at instance {_first_bad(array, item)}); "
            "clean the data, or add --allow-nan if that is what you test"
        )
    return np.ascontiguousarray(array.astype(target, copy=False))


def _first_bad(array: Array, item: Input) -> int:
    flat = by_instance(array, item.batch)
    return int(np.argmax(~np.isfinite(flat.reshape(len(flat), -1)).all(axis=1)))


def _fit_truth(truth: Array, count: int) -> Array:
    if truth.dtype.kind not in _KINDS:
        raise UsageError(f"y has dtype {truth.dtype}; it holds labels (integers) or values")
    if truth.ndim == 0 or len(truth) != count:
        raise UsageError(f"y has shape {_shape(truth.shape)}, but there are {count} inputs")
    if truth.dtype.kind == "f" and not np.isfinite(truth).all():
        raise UsageError("y holds NaN or infinity; clean the data")
    return truth


def _numpy_name(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype


def _shape(shape: Sequence[int | None]) -> str:
    return "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
