"""What users hand over, a model or arrays in memory, as the files that jobs are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outvote.api.options import CheckOptions
from outvote.core.arrays import Array
from outvote.core.case import load_data
from outvote.core.dialect import dialects
from outvote.core.errors import UsageError
from outvote.core.files import save_npz
from outvote.core.target import Target

ARRAYS = "arrays"  # the source of what was not read from a file of the user's
Inputs = Array | Sequence[Array] | Mapping[str, Array] | str | Path
"""One array, one per input, arrays by the names of the inputs, or the path of an `.npz` file."""


def as_file(model: Any, folder: Path, name: str = "model", inputs: Inputs | None = None) -> Path:
    """The path of a model; one that lives in memory is saved under this name first.

    A layer or a function becomes a model of what it makes of inputs like these.
    """
    if isinstance(model, str | Path):
        return Path(model)
    for wing in dialects():
        path = wing.files.saved(model, folder / name)
        if path is None and wing.live is not None:
            path = wing.live.saved_call(model, _read(inputs), folder / name)
        if path is not None:
            return path
    raise UsageError(
        "expected a Keras model or the path of a model file, or a PyTorch module; "
        f"received {type(model).__name__}"
    )


def itself(path: Path) -> tuple[Target, ...]:
    """A live model that was saved there, as a target of its own, where its dialect offers that."""
    found = [wing.live.itself(path) for wing in dialects() if wing.live is not None]
    return tuple(target for target in found if target is not None)


def without(own: Sequence[Target], options: CheckOptions) -> CheckOptions:
    """The options but for names of these targets, which take part in any case."""
    names = options.get("targets")
    if names is None:
        return options
    listed = [names] if isinstance(names, str) else list(names)
    kept = [name for name in listed if name not in {target.name for target in own}]
    return {**options, "targets": kept}


def _read(inputs: Inputs | None) -> list[Array]:
    if isinstance(inputs, str | Path):
        return list(load_data(Path(inputs)).values())
    return list((as_arrays(inputs, None) or {}).values())


def as_files(models: Sequence[Any], folder: Path) -> list[Path]:
    """Several models that are held against each other."""
    if isinstance(models, str | Path) or not isinstance(models, Sequence):
        raise UsageError(f"expected a list of models or of paths; received {type(models).__name__}")
    if not models:
        raise UsageError("models are held against each other; received an empty list")
    return [as_file(model, folder, f"model{n}") for n, model in enumerate(models, 1)]


def as_data(x: Inputs | None, y: Array | None, folder: Path, name: str = ARRAYS) -> Path | None:
    """The `.npz` file of inputs and ground truth; arrays are written into one."""
    if isinstance(x, str | Path):
        if y is not None:
            raise UsageError(f"y was given beside {x}; put both into the file, or give x itself")
        return Path(x)
    arrays = as_arrays(x, y)
    return None if arrays is None else save_npz(folder / f"{name}.npz", arrays)


def as_arrays(
    x: Array | Sequence[Array] | Mapping[str, Array] | None, y: Array | None
) -> dict[str, Array] | None:
    """Inputs and ground truth under the names that they have in a data file."""
    if x is None:
        if y is not None:
            raise UsageError("y was given without x; give the inputs that y belongs to")
        return None
    if isinstance(x, Mapping):
        arrays = {str(name): _array(array) for name, array in x.items()}
    elif isinstance(x, list | tuple):
        arrays = {f"x{i}": _array(array) for i, array in enumerate(x)}
    else:
        arrays = {"x": _array(x)}
    return arrays if y is None else {**arrays, "y": _array(y)}


def _array(given: Any) -> Array:
    """An array of what may be a tensor with a gradient, which NumPy does not take."""
    return np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
