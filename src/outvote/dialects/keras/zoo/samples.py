"""Inputs and answers for the zoo: generated ones, scikit-learn's digits, and what a user gives."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.dialects.keras.zoo.catalog import ZooEntry
from outvote.targets.choose import install_hint

Samples = tuple[Array, Array]
_FEWEST = 10  # samples: some to train on, some to test with
_MOST_CLASSES, _MOST_TOKENS = 10_000, 1_000_000


def generated(entry: ZooEntry, count: int, seed: int) -> Samples:
    """Samples with a rule that can be learnt, from nothing but a seed."""
    rng = np.random.default_rng(seed)
    if entry.takes == "images":
        return _gratings(entry, count, rng)
    if entry.takes == "tokens":
        return _opinions(entry, count, rng)
    if entry.takes == "arrays":
        return _sums(entry, count, rng)
    return _sines(entry, count, rng) if entry.data == "sine" else _walks(entry, count, rng)


def _gratings(entry: ZooEntry, count: int, rng: np.random.Generator) -> Samples:
    """Stripes and noise; the class is the direction of the stripes."""
    height, width, channels = entry.shape
    labels = rng.integers(0, entry.outputs, count)
    angle, phase, gain = (
        values.reshape(-1, 1, 1, 1)
        for values in (np.pi * labels / entry.outputs, *rng.uniform(0.5, 2, (2, count)))
    )
    v, u = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j][..., None]
    wave = np.sin(2 * np.pi * (3 * gain * (u * np.cos(angle) + v * np.sin(angle)) + phase))
    noise = rng.normal(0, 0.2, (count, height, width, channels))
    return (0.5 + wave / 2 + noise).astype(np.float32), labels


def _opinions(entry: ZooEntry, count: int, rng: np.random.Generator) -> Samples:
    """Random tokens; the last ones are of a kind that tells the class, as a verdict would."""
    (length,) = entry.shape
    labels = rng.integers(0, entry.outputs, count)
    common = entry.vocabulary // 20
    x = rng.integers(common, entry.vocabulary, (count, length))
    places = rng.integers(length - length // 4, length, (count, 4))
    words = rng.integers(0, common // entry.outputs, (count, 4)) * entry.outputs + labels[:, None]
    np.put_along_axis(x, places, words, axis=1)
    return x.astype(np.int32), labels


def _sums(entry: ZooEntry, count: int, rng: np.random.Generator) -> Samples:
    """Arrays of numbers; the answers are sums over every so many of them."""
    x = rng.normal(0, 1, (count, *entry.shape)).astype(np.float32)
    flat = np.tanh(x.reshape(count, -1))
    answers = [
        flat[:, i % flat.shape[1] :: entry.outputs].sum(axis=1) for i in range(entry.outputs)
    ]
    return x, np.stack(answers, axis=1)


def _sines(entry: ZooEntry, count: int, rng: np.random.Generator) -> Samples:
    """Windows of sine waves with the value that follows (LEMON's Sine-Wave)."""
    length, features = entry.shape
    step, phase = rng.uniform(0.1, 0.5, (count, 1)), rng.uniform(0, 2 * np.pi, (count, 1))
    waves = np.sin(step * np.arange(length + 1) + phase)[..., None].repeat(features, axis=2)
    return waves[:, :-1].astype(np.float32), waves[:, -1].astype(np.float32)


def _walks(entry: ZooEntry, count: int, rng: np.random.Generator) -> Samples:
    """Windows of random walks with the value that follows, in place of LEMON's Stock-Price."""
    length, features = entry.shape
    walks = rng.normal(0, 0.2, (count, length + 1, features)).cumsum(axis=1)
    walks += rng.normal(0, 1, (count, 1, features))
    return walks[:, :-1].astype(np.float32), walks[:, -1].astype(np.float32)


def digits() -> Mapping[str, Array]:
    """The 1,797 digits that come with scikit-learn, as images in [0, 1]."""
    if importlib.util.find_spec("sklearn") is None:
        raise UsageError(
            "training on digits needs scikit-learn, not installed here; "
            f"{install_hint('zoo')}, or give other data with --data FILE.npz"
        )
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return {"x": x.reshape(-1, 8, 8) / 16, "y": y}


def fitted(entry: ZooEntry, arrays: Mapping[str, Array], source: str) -> tuple[ZooEntry, Samples]:
    """Samples in the form that the model takes, and the model for their classes and tokens."""
    if not {"x", "y"} <= arrays.keys():
        held = ", ".join(sorted(arrays)) or "nothing"
        raise UsageError(f"{source} must hold x and y to train on; it holds {held}")
    x, y = arrays["x"], arrays["y"]
    for name, array in (("x", x), ("y", y)):
        if array.dtype.kind not in "buif" or not np.isfinite(array).all():
            raise UsageError(f"{name} of {source} must hold finite numbers (dtype {array.dtype})")
    if x.ndim < 2 or len(x) < _FEWEST or y.shape[:1] != x.shape[:1] or not x.size * y.size:
        raise UsageError(
            f"{source} must hold {_FEWEST} samples or more, as many in x as in y; "
            f"x has shape {x.shape}, y has {y.shape}"
        )
    fit = {
        "images": _fit_images,
        "tokens": _fit_tokens,
        "sequences": _fit_sequences,
        "arrays": _fit_arrays,
    }
    entry, x = fit[entry.takes](entry, x, source)
    if not entry.is_classifier:
        y = y.reshape(len(y), -1).astype(np.float32)
        return replace(entry, outputs=y.shape[1]), (x, y)
    labels = _labels(entry, y, source)
    return replace(entry, outputs=max(2, int(labels.max()) + 1)), (x, labels)


def _labels(entry: ZooEntry, y: Array, source: str) -> Array:
    labels = y.reshape(len(y), -1)
    if labels.shape[1] != 1 or (labels != labels.round()).any() or labels.min() < 0:
        raise UsageError(
            f"{entry.name} is a classifier, so y of {source} must be one class from 0 for each "
            f"sample; received shape {y.shape}, smallest {y.min():g}, dtype {y.dtype}"
        )
    _refuse_more("classes", labels.max() + 1, _MOST_CLASSES, f"y of {source}")
    return labels[:, 0].astype(np.int64)


def _refuse_more(what: str, count: float, most: int, where: str) -> None:
    if count > most:
        raise UsageError(f"{where} asks for {count:.0f} {what}, more than {most}; renumber them")


def _wrong_shape(entry: ZooEntry, x: Array, source: str, wanted: str) -> UsageError:
    return UsageError(f"{entry.name} takes {wanted}; x of {source} has shape {x.shape}")


def _fit_images(entry: ZooEntry, x: Array, source: str) -> tuple[ZooEntry, Array]:
    """Resized to the model's own input; bytes become [0, 1]."""
    images = x[..., None] if x.ndim == 3 else x
    if images.ndim != 4 or images.shape[-1] not in (1, 3):
        raise _wrong_shape(entry, x, source, "images (count, height, width) with 1 or 3 channels")
    height, width, channels = entry.shape
    scale = 255 if images.dtype.kind in "iu" else 1
    images = images.astype(np.float32) / np.float32(scale)
    if channels == 1:
        images = images.mean(axis=-1, keepdims=True)
    rows, columns = _stretch(images.shape[1], height), _stretch(images.shape[2], width)
    resized = np.einsum("ih,nhwc,jw->nijc", rows, images, columns, optimize=True)
    return entry, np.ascontiguousarray(np.broadcast_to(resized, (len(images), *entry.shape)))


def _stretch(old: int, new: int) -> Array:
    """The matrix that interpolates `old` values linearly at `new` places."""
    places = (np.arange(new) + 0.5) * old / new - 0.5
    matrix = [np.interp(places, np.arange(old), row) for row in np.eye(old)]
    return np.stack(matrix, axis=1).astype(np.float32)


def _fit_tokens(entry: ZooEntry, x: Array, source: str) -> tuple[ZooEntry, Array]:
    if x.ndim != 2 or (x != np.round(x)).any() or x.min() < 0:
        raise _wrong_shape(entry, x, source, "tokens (count, length), whole numbers from 0")
    _refuse_more("tokens", x.max() + 1, _MOST_TOKENS, f"x of {source}")
    return replace(entry, shape=x.shape[1:], vocabulary=int(x.max()) + 1), x.astype(np.int32)


def _fit_arrays(entry: ZooEntry, x: Array, source: str) -> tuple[ZooEntry, Array]:
    if x.shape[1:] != entry.shape:
        raise _wrong_shape(entry, x, source, f"arrays of shape {entry.shape}")
    return entry, x.astype(np.float32)


def _fit_sequences(entry: ZooEntry, x: Array, source: str) -> tuple[ZooEntry, Array]:
    sequences = (x[..., None] if x.ndim == 2 else x).astype(np.float32)
    if sequences.ndim != 3:
        raise _wrong_shape(entry, x, source, "sequences (count, length, features)")
    return replace(entry, shape=sequences.shape[1:]), sequences
