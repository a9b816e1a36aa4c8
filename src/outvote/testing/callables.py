"""Functions of any libraries, called in this process and held against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from outvote.api.given import Inputs, as_arrays
from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.outputs import Outputs
from outvote.core.truth import Truth
from outvote.judge.compare import Comparison, Settings, compare_all

_SHOWN = 6  # numbers of an answer
_JITTERS = 3  # how often rounding is tried out


def callables_of(subject: Any) -> dict[str, Callable[..., Any]] | None:
    """Several functions by name; None for anything else."""
    if isinstance(subject, Mapping):
        named = {str(name): function for name, function in subject.items()}
    elif isinstance(subject, list | tuple):
        named = _by_name(subject)
    else:
        return None
    if len(named) < 2 or not all(callable(function) for function in named.values()):
        raise UsageError(
            f"a comparison needs two functions or more, in a list or by name; received {subject!r}"
        )
    return named


def _by_name(functions: Sequence[Any]) -> dict[str, Callable[..., Any]]:
    names = [str(getattr(f, "__qualname__", type(f).__name__)) for f in functions]
    if len(set(names)) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
    return dict(zip(names, functions, strict=True))


@dataclass(frozen=True)
class _Answer:
    """What a function gave, or the error that it raised."""

    outputs: Outputs | None
    error: str = ""


def disagreement(
    functions: Mapping[str, Callable[..., Any]], inputs: Inputs | None, tolerance: float | None
) -> str | None:
    """How they differ by more than rounding does; None where they agree."""
    if inputs is None or isinstance(inputs, str | Path):
        raise UsageError("functions need `inputs`: an array, or one per argument in a list")
    arrays = list((as_arrays(inputs, None) or {}).values())
    answers = {name: _answer(function, arrays) for name, function in functions.items()}
    errors = {name: found.error for name, found in answers.items() if found.outputs is None}
    outputs = {name: found.outputs for name, found in answers.items() if found.outputs is not None}
    if len(errors) == len(functions):
        return None  # all refuse
    if errors:
        told = "\n".join(f"  {name}: {error}" for name, error in errors.items())
        return f"{', '.join(outputs)} answer, and not the others:\n{told}"
    settings = Settings(metrics=("relative",), tolerance=tolerance)
    apart = [c for c in compare_all(outputs, Truth(), settings) if c.inconsistent]
    real = [c for c in apart if not _is_rounding(c, functions, arrays, outputs, settings)]
    return _told(real, outputs) if real else None


def _answer(function: Callable[..., Any], arrays: Sequence[Array]) -> _Answer:
    try:
        given = function(*(np.array(array) for array in arrays))  # which it may write into
    except Exception as error:  # a refusal is an answer too
        return _Answer(None, f"{type(error).__name__}: {error}")
    listed = list(given) if isinstance(given, list | tuple) else [given]
    found = tuple(np.atleast_1d(_array(item)) for item in listed)
    return _Answer(Outputs(found, tuple(str(array.dtype) for array in found)))


def _array(value: Any) -> Array:
    """A tensor of any library as an array: those that keep gradients are let go of first."""
    for step in ("detach", "cpu"):
        value = getattr(value, step)() if hasattr(value, step) else value
    return np.asarray(value)


def _is_rounding(
    pair: Comparison,
    functions: Mapping[str, Callable[..., Any]],
    arrays: Sequence[Array],
    outputs: Mapping[str, Outputs],
    settings: Settings,
) -> bool:
    """Whether inputs that move by their last place move the outputs as far as these are apart."""
    apart = max((m.maximum for m in pair.measured), default=np.inf)
    if pair.mismatch is not None or not np.isfinite(apart):
        return False
    floor = 0.0
    for seed in range(_JITTERS):
        moved = [_jittered(array, seed) for array in arrays]
        for name in pair.targets:
            found = _answer(functions[name], moved).outputs
            if found is not None:
                both = {"as it is": outputs[name], "moved": found}
                (noise,) = compare_all(both, Truth(), settings)
                floor = max([floor, *(m.maximum for m in noise.measured)])
    return apart <= settings.noise_factor * floor


def _jittered(array: Array, seed: int) -> Array:
    if array.dtype.kind != "f":
        return array
    signs = np.random.default_rng(seed).choice([-1, 1], array.shape)
    step = np.finfo(array.dtype).eps
    moved: Array = (array * (1 + step * signs)).astype(array.dtype)
    return moved


def _told(apart: Sequence[Comparison], outputs: Mapping[str, Outputs]) -> str:
    lines = [_pair(pair) for pair in apart]
    accused = _outvoted(apart, list(outputs))
    if accused:
        lines.insert(0, f"{accused} is outvoted by {', '.join(n for n in outputs if n != accused)}")
    row = apart[0].worst_input
    width = max(map(len, outputs))
    lines += ["", f"answers to input {row}:"]
    for name, found in outputs.items():
        values = [f"{float(value):.8g}" for value in found.rows[0][row].reshape(-1)[:_SHOWN]]
        lines.append(f"  {name:<{width}}  {'  '.join(values)}")
    return "\n".join(lines)


def _pair(pair: Comparison) -> str:
    far = max((m.maximum for m in pair.measured), default=np.nan)
    return f"{' and '.join(pair.targets)}: {pair.mismatch or f'apart by {far:.2g} (relative)'}"


def _outvoted(apart: Sequence[Comparison], names: Sequence[str]) -> str | None:
    """The one that differs from all others, where those agree."""
    if len(names) < 3:
        return None
    pairs = [set(pair.targets) for pair in apart]
    common = set.intersection(*pairs)
    return next(iter(common)) if len(common) == 1 and len(pairs) == len(names) - 1 else None
