"""Inputs and ground truth for a model: from an `.npz` file, from arrays, or made at random."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from outvote.core.archive import BROKEN, members, require_whole
from outvote.core.arrays import TEXT, Array, travels
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.instances import by_instance, count_of, taken
from outvote.core.model import Input, Model
from outvote.core.truth import Truth

_FREE_DIMENSION = 16  # size given to a free dimension of random inputs
_KINDS = "buif"
_MOST_RANDOM = 1 << 25  # numbers; while they are drawn each takes 12 bytes


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
    what = ".npz file"
    if not path.exists():
        raise UsageError(f"the data file {path} does not exist")
    try:
        with path.open("rb") as opened:
            if opened.read(6) == np.lib.format.MAGIC_PREFIX:
                raise UsageError(f"{path} is a single array; save it with np.savez(path, x=...)")
        entries = members(path, what)
        require_whole(path, what)
        with zipfile.ZipFile(path) as archive:
            for entry in entries:
                _require_announced(archive, entry)
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (*BROKEN, MemoryError, KeyError) as error:
        raise UsageError(f"{path} is not a readable {what}: {error}") from error


def _require_announced(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """An array is as large as its header says: NumPy makes room for it before it reads."""
    with archive.open(entry) as member:
        version = np.lib.format.read_magic(member)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise ValueError(f"{entry.filename!r} is of format {version}")
        shape, _, dtype = read(member)
        if dtype.hasobject:
            raise ValueError(f"{entry.filename!r} holds objects, which allow_pickle=False forbids")
        size, held = math.prod(shape) * dtype.itemsize, entry.file_size - member.tell()
    if size != held:
        raise ValueError(f"{entry.filename!r} announces {size:,} bytes and holds {held:,}")


def fit(
    arrays: Mapping[str, Array],
    model: Model,
    source: str,
    allow_nan: bool,
    allow_empty: bool | None = None,  # None: not to be had
) -> Data:
    """Arrays in the order and types of the model's inputs; whatever does not fit is refused."""
    for item in model.inputs:
        _require_known(item, model)
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
    for item in model.inputs:
        _require_known(item, model)
    shapes = [
        [count if axis == item.batch else n or _FREE_DIMENSION for axis, n in enumerate(item.shape)]
        for item in model.inputs
    ]
    numbers = sum(math.prod(shape) for shape in shapes)
    if numbers > _MOST_RANDOM:
        told = ", ".join(_shape(item.shape) for item in model.inputs)
        raise UsageError(
            f"{count} random inputs for a model that takes {told} would be {numbers:,} numbers, "
            f"more than {_MOST_RANDOM:,}; ask for fewer with --count, or give --data"
        )
    rng = np.random.default_rng(seed)
    inputs = []
    for item, shape in zip(model.inputs, shapes, strict=True):
        if "float" in item.dtype:
            inputs.append(rng.normal(size=shape).astype(_numpy_name(item.dtype)))
        elif item.dtype == TEXT:
            inputs.append(rng.choice(_words(item, model), shape))
        else:
            most = dialect(model.dialect).layers.vocabulary(model, item)
            inputs.append(rng.integers(0, _within(item.dtype, most), shape).astype(item.dtype))
    return Data(tuple(inputs), None, "random", tuple(item.batch for item in model.inputs))


def _within(dtype: str, most: int) -> int:
    """So many different integers as the type holds, at least one."""
    held = 2 if dtype == "bool" else int(np.iinfo(dtype).max) + 1
    return max(1, min(most, held, 1 << 31))


def _words(item: Input, model: Model) -> Array:
    """Texts that an input may hold; none where the dialect's targets take no texts."""
    return np.array(dialect(model.dialect).layers.words(model, item), np.str_)


def _require_known(item: Input, model: Model) -> None:
    """Only types that travel to a target: complex numbers and floats of 8 bits do not."""
    if travels(item.dtype) and (item.dtype != TEXT or _words(item, model).size):
        return
    remedy = "check the model without the part that reads it"
    if item.dtype == TEXT:
        remedy = "check the part behind its TextVectorization or StringLookup, which takes integers"
    raise UsageError(
        f"the model's input {item.name!r} takes {item.dtype}, which cannot be given to targets; "
        f"{remedy}"
    )


def _input_names(arrays: Mapping[str, Array], model: Model, source: str) -> list[str]:
    count = len(model.inputs)
    if not count:
        return []
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
    if array.dtype.kind not in ("U" if item.dtype == TEXT else _KINDS):
        wanted_kind = "texts (str)" if item.dtype == TEXT else f"numbers ({item.dtype})"
        raise UsageError(f"{name} has dtype {array.dtype}; the model takes {wanted_kind}")
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
    whole = target.kind in "iub"
    if array.dtype.kind == "f" and not (allow_nan and not whole) and not np.isfinite(array).all():
        remedy = ", or add --allow-nan if that is what you test" if not whole else ""
        raise UsageError(
            f"{name} holds NaN or infinity (first at instance {_first(~np.isfinite(array), item)})"
            f"{f', but the model takes {item.dtype}' if whole else ''}; clean the data{remedy}"
        )
    if whole and array.dtype.kind == "f" and not np.array_equal(array, np.round(array)):
        raise UsageError(
            f"{name} has dtype {array.dtype} with fractions, but the model's input "
            f"{item.name!r} takes {item.dtype}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        # Not ascontiguousarray, which gives a number without a dimension one.
        fitted = np.asarray(array.astype(target, copy=False), order="C")
    _require_held(array, fitted, name, item)
    return fitted


def _require_held(array: Array, fitted: Array, name: str, item: Input) -> None:
    place = None if array.dtype == fitted.dtype else _altered(array, fitted)
    if place is not None:
        where = np.unravel_index(place, array.shape)
        instance = 0 if item.batch is None else where[item.batch]
        raise UsageError(
            f"{name} holds {array[where]} (instance {instance}), but the model's input "
            f"{item.name!r} takes {item.dtype}, which cannot hold it; mend the data"
        )


def _altered(array: Array, fitted: Array) -> int | None:
    """Where a number has become another one, beyond rounding; None: nowhere."""
    if fitted.dtype.kind == "U" or not array.size:
        return None
    if fitted.dtype.kind == "f":
        places = np.flatnonzero(np.isfinite(array) & ~np.isfinite(fitted))[:1].tolist()
    else:  # as integers of Python: NumPy would compare some types as float64
        low, high = _range_of(fitted.dtype)
        extremes = (int(array.argmin()), int(array.argmax()))
        places = [n for n in extremes if not low <= int(array.flat[n]) <= high]
    return places[0] if places else None


def _range_of(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the largest whole number of a type."""
    return (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


def _first(bad: Array, item: Input) -> int:
    """The first instance that has one."""
    flat = by_instance(bad, item.batch)
    return int(np.argmax(flat.reshape(len(flat), -1).any(axis=1)))


def _fit_truth(truth: Array, count: int) -> Array:
    if truth.dtype.kind not in _KINDS:
        raise UsageError(f"y has dtype {truth.dtype}; it holds labels (integers) or values")
    if truth.ndim == 0 or len(truth) != count:
        raise UsageError(f"y has shape {_shape(truth.shape)}, but there are {count} inputs")
    if truth.dtype.kind == "f" and not np.isfinite(truth).all():
        raise UsageError("y holds NaN or infinity; clean the data")
    return truth


def _numpy_name(dtype: str) -> str:
    return {"bfloat16": "float32", TEXT: "str"}.get(dtype, dtype)


def _shape(shape: Sequence[int | None]) -> str:
    return "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
