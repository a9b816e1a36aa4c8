"""PyTorch's samples of its operators, by name and type: its OpInfo database, made for its tests."""

from __future__ import annotations

import functools
import importlib
import itertools
import random
import sys
import types
import unittest
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from outvote.worker.unfit import Unfit

# Types that targets are given as they are; others are PyTorch's alone.
_FLOATS = ("float32", "float64", "float16", "bfloat16")
TYPES = (*_FLOATS, "int64", "int32", "int8", "uint8", "bool")
_MOST = 40  # samples of one operator and type


@dataclass(frozen=True)
class OperatorSample:
    """Arguments that an operator takes."""

    function: Any
    input: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@functools.cache
def operators() -> dict[str, Any]:
    """The database, by the names of operators with their variants."""
    _pretend_expecttest()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch, about its own tests
        from torch.testing._internal.common_methods_invocations import op_db
    return {found.full_name: found for found in op_db}


def _pretend_expecttest() -> None:
    """PyTorch's module takes a base class for its tests from there; we run none of them."""
    try:
        importlib.import_module("expecttest")
    except ImportError:
        module: Any = types.ModuleType("expecttest")
        module.TestCase = unittest.TestCase
        sys.modules["expecttest"] = module


@functools.cache
def types_of(name: str) -> tuple[str, ...]:
    """The types that an operator has samples of, as far as they travel."""
    known = operators()[name].supported_dtypes("cpu")
    return tuple(told for told in TYPES if getattr(torch, told) in known)


@functools.lru_cache(maxsize=1024)
def samples_of(name: str, dtype: str, seed: int) -> Sequence[OperatorSample]:
    """The samples of an operator in a type: always the same ones."""
    found = operators()[name]
    _begin_chance(f"{name} {dtype} {seed}")
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = iter(found.sample_inputs_func(found, "cpu", getattr(torch, dtype), False))
            drawn = list(itertools.islice(given, _MOST))
    except Exception as error:  # what PyTorch's own tests would skip, as on a build without LAPACK
        raise Unfit(f"{name} has no samples in {dtype}: {error}") from error
    return [OperatorSample(found.op, item.input, item.args, item.kwargs) for item in drawn]


def _begin_chance(text: str) -> None:
    """Samples are drawn from all three generators."""
    start = zlib.crc32(text.encode())
    torch.manual_seed(start)
    random.seed(start)
    np.random.seed(start)
