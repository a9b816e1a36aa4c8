"""The legal range of the inputs, and what each feature of a table may do."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.explore_protocol import Rules
from outvote.explore.job import DEFAULTS, ExploreJob

_USUAL_RANGES = ((0.0, 1.0), (-1.0, 1.0), (0.0, 255.0))
_PICTURES_ONLY = ("occlusion", "blackout")
_WHOLE_PICTURE = ("light", *_PICTURES_ONLY)
_SHARE = {"occlusion": 0.35, "blackout": 0.2}  # of the shorter side, as a rectangle's side
_COLUMNS = ("name", "group", "unit", "increment", "decrement", "low", "high")
_YES, _NO = ("1", "yes", "true"), ("0", "no", "false", "")


@dataclass(frozen=True)
class Features:
    """The columns of a features file; NaN where it says nothing."""

    names: tuple[str, ...]
    groups: tuple[str, ...]
    unit: Array
    increment: Array
    decrement: Array
    low: Array
    high: Array


def read_features(path: Path) -> Features:
    """A CSV file with a header: `name`, and any of the other columns; one row per feature."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames or []
            rows = list(reader)
    except FileNotFoundError:
        raise UsageError(f"the features file {path} does not exist") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} is not a readable CSV file: {error}") from error
    unknown = [name for name in header if name not in _COLUMNS]
    if "name" not in header or unknown:
        wrong = f"the unknown column {unknown[0]!r}" if "name" in header else "no column `name`"
        raise UsageError(f"{path} has {wrong}; columns are {', '.join(_COLUMNS)}")

    def numbers(column: str, missing: float) -> Array:
        return np.array([_number(row, column, missing, path) for row in rows])

    def flags(column: str) -> Array:
        default = "1" if column not in header else ""
        return np.array([_flag(row.get(column) or default, column, path) for row in rows])

    return Features(
        tuple(str(row["name"]) for row in rows),
        tuple(str(row.get("group") or "") for row in rows),
        numbers("unit", 1.0),
        flags("increment"),
        flags("decrement"),
        numbers("low", np.nan),
        numbers("high", np.nan),
    )


def _number(row: dict[str, Any], column: str, missing: float, path: Path) -> float:
    text = row.get(column) or ""
    if not text:
        return missing
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value) or (column == "unit" and value <= 0):
        raise UsageError(f"{path}: {column} of {row['name']!r} is {text!r}; give a number")
    return value


def _flag(text: str, column: str, path: Path) -> bool:
    if text.strip().lower() in _YES:
        return True
    if text.strip().lower() in _NO:
        return False
    raise UsageError(f"{path}: {column} is {text!r}; write 1 or 0")


def legal_range(array: Array, given: tuple[float, float] | None) -> tuple[Array, Array]:
    """The range as given; or the usual one of pictures that holds the data; or the data's own.

    Columns of a table are features of different kinds: each has its own range.
    """
    shape = array.shape[1:]
    if given is not None:
        low, high = given
        if float(array.min()) < low or float(array.max()) > high:
            raise UsageError(
                f"the seeds lie between {array.min():g} and {array.max():g}, outside of "
                f"--range {low:g},{high:g}; give a range that holds them"
            )
        return np.full(shape, low), np.full(shape, high)
    for low, high in _USUAL_RANGES:
        if low <= float(array.min()) and float(array.max()) <= high:
            return np.full(shape, low), np.full(shape, high)
    if array.ndim == 2:
        return array.min(axis=0).astype(float), array.max(axis=0).astype(float)
    return np.full(shape, float(array.min())), np.full(shape, float(array.max()))


def rules_for(
    job: ExploreJob, inputs: Sequence[Array], features: Features | None
) -> tuple[Rules, ...]:
    """The rules of each input as a worker reads them."""
    rules = []
    for array in inputs:
        low, high = legal_range(array, job.limits_of_range)
        named = _named(job, array, low, high, features)
        if job.constraint == "add-only":
            _require_binary(array, named)
        step = job.hyperparameters[2]
        if job.constraint not in DEFAULTS:
            step *= float(np.max(named["high"] - named["low"])) / 255
        contiguous = {name: np.ascontiguousarray(value) for name, value in named.items()}
        rules.append(Rules(step=step, rectangle=_rectangle(job, array), **contiguous))
    return tuple(rules)


def _named(
    job: ExploreJob, array: Array, low: Array, high: Array, features: Features | None
) -> dict[str, Array]:
    named = {"low": low, "high": high}
    if features is None:
        return named
    if job.constraint in _WHOLE_PICTURE:
        raise UsageError(
            f"--constraint {job.constraint} changes all values alike and cannot keep to "
            "--features; use integer, add-only or none"
        )
    if array.ndim != 2 or array.shape[1] != len(features.names):
        raise UsageError(
            f"{job.features} describes {len(features.names)} features, but an input has shape "
            f"{array.shape[1:]}; give one row per feature"
        )
    grow = features.increment.astype(bool)
    if job.groups:
        unknown = sorted(set(job.groups) - set(features.groups))
        if unknown:
            raise UsageError(
                f"{job.features} has no group {unknown[0]!r}; it has "
                f"{', '.join(sorted(set(features.groups)))}"
            )
        inside = np.isin(np.array(features.groups), job.groups)
        grow = grow & inside
        named["decrease"] = features.decrement.astype(bool) & inside
    else:
        named["decrease"] = features.decrement.astype(bool)
    low = np.where(np.isnan(features.low), low, features.low)
    high = np.where(np.isnan(features.high), high, features.high)
    for name, least, most in zip(features.names, low, high, strict=True):
        if least > most:
            raise UsageError(
                f"{job.features}: feature {name!r} has the range {least:g} to {most:g}; "
                "low must not be above high"
            )
    return {**named, "low": low, "high": high, "increase": grow, "unit": features.unit}


def _require_binary(array: Array, named: dict[str, Array]) -> None:
    """A feature that may be added is there or not."""
    free = named.get("increase", np.ones(array.shape[1:], bool))
    binary = (array == named["low"]) | (array == named["high"])
    if not (binary | ~free).all():
        raise UsageError(
            "--constraint add-only needs features that are there or not, but one that may be added "
            f"holds other values than {named['low'].min():g} and {named['high'].max():g}; "
            "use --groups, --range or --constraint integer"
        )


def _rectangle(job: ExploreJob, array: Array) -> tuple[int, int] | None:
    if job.constraint not in _PICTURES_ONLY:
        return None
    if array.ndim < 3:
        raise UsageError(
            f"--constraint {job.constraint} needs pictures, but an input has shape "
            f"{array.shape[1:]}; use none, integer or add-only"
        )
    height, width = array.shape[1:3]
    if job.rectangle is None:
        side = max(1, round(_SHARE[job.constraint] * min(height, width)))
        return side, side
    if job.rectangle[0] > height or job.rectangle[1] > width:
        raise UsageError(
            f"--rectangle {job.rectangle[0]}x{job.rectangle[1]} does not fit into pictures of "
            f"{height}x{width}; give a smaller one"
        )
    return job.rectangle[0], job.rectangle[1]
