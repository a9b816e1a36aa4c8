"""Training in PyTorch's words: losses of `torch.nn` and optimisers of `torch.optim` by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from outvote.core import lesson
from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.model import Layer, Model
from outvote.core.train_protocol import Named
from outvote.dialects.torch_export.updates import exact_update as exact_update

AS_WRITTEN = True  # a program is exported in training mode, or in eval mode
# What a loss takes for the truth.
_CLASSES, _VALUES, _BITS, _SIGNS, _PARTS, _COUNTS = range(6)
LOSSES: Mapping[str, int] = {
    **dict.fromkeys(("CrossEntropyLoss", "NLLLoss", "MultiMarginLoss"), _CLASSES),
    **dict.fromkeys(("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss"), _VALUES),
    **dict.fromkeys(("BCELoss", "BCEWithLogitsLoss", "MultiLabelSoftMarginLoss"), _BITS),
    **dict.fromkeys(("SoftMarginLoss", "HingeEmbeddingLoss"), _SIGNS),
    "KLDivLoss": _PARTS,
    "PoissonNLLLoss": _COUNTS,
}
# Not those that take a closure (LBFGS) or sparse gradients alone (SparseAdam).
OPTIMIZERS = tuple(
    """Adadelta Adafactor Adagrad Adam AdamW Adamax ASGD NAdam RAdam RMSprop Rprop SGD""".split()
)


def named(text: str, option: str) -> Named:
    """A loss of `torch.nn` or an optimiser of `torch.optim`, as they are written there or not."""
    found = lesson.named(text, option)
    names: Sequence[str] = tuple(LOSSES) if option == "--loss" else OPTIMIZERS
    known = {_plain(name): name for name in names}
    if _plain(found["class_name"]) not in known:
        raise UsageError(
            f"{option} {found['class_name']!r} is none that PyTorch programs are trained with "
            f"here; choose from {', '.join(names)}"
        )
    return {**found, "class_name": known[_plain(found["class_name"])]}


def _plain(name: str) -> str:
    """`cross_entropy`, `crossentropy` and `CrossEntropyLoss` are one."""
    return "".join(filter(str.isalnum, name.lower())).removesuffix("loss")


def loss_for(output: Array, labels: Array | None) -> Named:
    """For class labels crossentropy, of two classes where there is one number; else MSE."""
    if labels is None:
        return {"class_name": "MSELoss"}
    if _classes(output) > 1:
        return {"class_name": "CrossEntropyLoss"}
    inside = bool(((output >= 0) & (output <= 1)).all())
    return {"class_name": "BCELoss" if inside else "BCEWithLogitsLoss"}


def truth_for(
    loss: Named,
    output: Array,
    labels: Array | None,
    given: Array | None,
    rng: np.random.Generator,
) -> Array:
    """Labels as numbers or as rows of one 1, values as they are; drawn where none is known."""
    takes = LOSSES[str(loss["class_name"])]
    if given is not None:
        return given.astype(output.dtype)
    if takes == _CLASSES:
        shape = output.shape[:1] + output.shape[2:] if output.ndim > 1 else ()
        found = rng.integers(0, _classes(output), shape) if labels is None else labels
        return found.astype(np.int64)
    if labels is not None:
        bits = _in_rows(labels, output)
        return (2 * bits - 1 if takes == _SIGNS else bits).astype(output.dtype)
    return _drawn(takes, output.shape, rng).astype(output.dtype)


def _classes(output: Array) -> int:
    """PyTorch's losses have classes along the second axis."""
    return int(output.shape[1] if output.ndim > 1 else output.shape[0] if output.ndim else 1)


def _in_rows(labels: Array, output: Array) -> Array:
    """Labels of the shape of an output: a 1 in the place of each, or themselves."""
    if labels.size == output.size:
        return labels.reshape(output.shape)
    rows: Array = np.eye(_classes(output))[labels]
    return np.moveaxis(rows, -1, 1)


def _drawn(takes: int, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if takes == _VALUES:
        return rng.normal(size=shape)
    if takes == _PARTS:
        parts: Array = rng.random(shape)
        return parts / parts.sum(axis=-1, keepdims=True) if shape else parts
    most = 5 if takes == _COUNTS else 2
    found = rng.integers(0, most, shape)
    return 2 * found - 1 if takes == _SIGNS else found


def features(optimizer: Named) -> dict[str, Named]:
    """Without its decay of weights, where it has one."""
    config = optimizer.get("config") or {}
    if not config.get("weight_decay"):
        return {}
    return {"decay": {**optimizer, "config": {**config, "weight_decay": 0.0}}}


def passed_on(model: Model) -> Model | None:
    """PyTorch's losses read what they are given, and nothing behind it."""
    return None


def is_regularised(layer: Layer) -> bool:
    """No call adds anything to a loss."""
    return False


def constraint_of(layer: Layer, weight: str) -> Named | None:
    """PyTorch holds weights to nothing."""
    return None


def looked_up(model: Model, layer: Layer, inputs: Sequence[Array]) -> Array | None:
    """Optimisers are given whole gradients."""
    return None
