"""Operators that look at a tensor between its elements: Resize, AffineGrid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.onnx.reference.node_call import NodeCall, Uncovered


@dataclass(frozen=True)
class Axis:
    """One axis of a tensor that is resized: lengths, scale, and the part that is looked at."""

    before: int
    after: int
    scale: float
    start: float = 0.0
    end: float = 1.0

    def places(self, mode: str) -> Array:
        """Where each element of the result lies in the original, by the text's formulas."""
        x = np.arange(self.after, dtype=np.float64)
        if mode == "asymmetric":
            return x / self.scale
        if mode == "align_corners":
            return x * (self.before - 1) / np.float64(self.after - 1)  # no number for one element
        if mode == "tf_crop_and_resize":
            if self.after == 1:
                return np.array([0.5 * (self.start + self.end) * (self.before - 1)])
            step = (self.end - self.start) * (self.before - 1) / (self.after - 1)
            return self.start * (self.before - 1) + x * step
        if mode == "pytorch_half_pixel" and self.after == 1:
            return np.zeros(1)
        half = (x + 0.5) / self.scale - 0.5
        if mode == "half_pixel_symmetric":
            adjustment = self.after / (self.scale * self.before)
            return self.before / 2 * (1 - adjustment) + half
        return np.asarray(half)


def _linear(far: Array) -> Array:
    return np.asarray(np.maximum(1 - np.abs(far), 0.0))


def _cubic(a: float) -> Callable[[Array], Array]:
    """Keys' kernel, equation 4 of the paper that the text names."""

    def kernel(far: Array) -> Array:
        s = np.abs(far)
        inner = (a + 2) * s**3 - (a + 3) * s**2 + 1
        outer = a * s**3 - 5 * a * s**2 + 8 * a * s - 4 * a
        return np.where(s <= 1, inner, np.where(s < 2, outer, 0.0))

    return kernel


_NEAREST: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


@dataclass(frozen=True)
class Sampling:
    """How values between elements are found."""

    mode: str
    coordinates: str
    nearest: str
    kernel: Callable[[Array], Array]
    reach: int  # elements on each side
    antialias: bool
    exclude_outside: bool

    def matrix(self, axis: Axis) -> Array:
        """(after, before): what each element of the result takes of each of the original."""
        found = np.zeros((axis.after, axis.before))
        stretch = max(1.0, 1 / axis.scale) if self.antialias else 1.0
        reach = math.ceil(self.reach * stretch)
        for row, place in enumerate(axis.places(self.coordinates)):
            if np.isnan(place):
                found[row] = np.nan
                continue
            if not self.antialias and float(place).is_integer():
                seen = np.array([int(place)])
                weights = np.ones(1)
            else:
                low = math.floor(place)
                seen = np.arange(low - reach + 1, low + reach + 1)
                weights = self.kernel((place - seen) / stretch)
                if self.antialias:
                    weights = weights / weights.sum()
            if self.exclude_outside:
                weights = np.where((seen < 0) | (seen >= axis.before), 0.0, weights)
                weights = weights / weights.sum()
            np.add.at(found[row], np.clip(seen, 0, axis.before - 1), weights)
        return found

    def along(self, x: Array, place: int, axis: Axis) -> Array:
        """The tensor, resized along one axis."""
        if self.mode == "nearest":
            return np.take(x, self._chosen(axis), axis=place)
        return np.moveaxis(np.tensordot(self.matrix(axis), x, (1, place)), 0, place)

    def _chosen(self, axis: Axis) -> Array:
        """The elements that are taken; none where rounding of a place could take the next one.

        A scale that is a power of two leaves nothing to round.
        """
        places, choose = axis.places(self.coordinates), _NEAREST[self.nearest]
        if np.isnan(places).any():
            raise Uncovered("the nearest to no place")
        step = choose(places)
        near = [choose(places + (1e-6 * np.abs(places) + 1e-7) * sign) for sign in (1, -1)]
        if math.frexp(axis.scale)[0] != 0.5 and any((step != other).any() for other in near):
            raise Uncovered("a place at a step")
        return np.clip(step, 0, axis.before - 1).astype(int)


def _resized(x: Array, axes: Sequence[Axis], how: Sampling, outside: float | None) -> Array:
    if how.mode != "nearest" and not np.isfinite(x).all():
        raise Uncovered("weights of what is not finite")
    y = x
    for place, axis in enumerate(axes):
        if (axis.before, axis.scale, axis.start, axis.end) != (axis.after, 1.0, 0.0, 1.0):
            y = how.along(y, place, axis)
    if outside is None:
        return y
    for place, axis in enumerate(axes):
        places = axis.places(how.coordinates)
        beyond = (places < 0) | (places > axis.before - 1)
        shape = [-1 if a == place else 1 for a in range(y.ndim)]
        y = np.where(beyond.reshape(shape), outside, y)
    return y


def _resize(call: NodeCall) -> list[Array]:
    if call.opset < 11:
        raise Uncovered("Resize before opset 11")
    x, roi, scales, sizes = call.need(0), call.arg(1), call.arg(2), call.arg(3)
    told = call.get("axes")
    chosen = [int(n) % x.ndim for n in told] if told else list(range(x.ndim))
    call.only("keep_aspect_ratio_policy", "stretch")
    coordinates = str(call.get("coordinate_transformation_mode", "half_pixel"))
    crops = coordinates == "tf_crop_and_resize"
    extrapolation = float(call.get("extrapolation_value", 0.0))
    spans = [(0.0, 1.0)] * x.ndim
    if crops and roi is not None:
        for place, axis in enumerate(chosen):
            spans[axis] = (float(roi[place]), float(roi[place + len(chosen)]))
    axes = [Axis(n, n, 1.0, *spans[place]) for place, n in enumerate(x.shape)]
    for place, axis in enumerate(chosen):
        before, (start, end) = x.shape[axis], spans[axis]
        if scales is not None and scales.size:
            scale = float(scales.reshape(-1)[place])
            after = math.floor(before * (end - start) * scale)
        elif sizes is not None:
            after = int(sizes.reshape(-1)[place])
            scale = after / before
        else:
            raise Uncovered("neither sizes nor scales")
        axes[axis] = Axis(before, after, scale, start, end)
    mode = str(call.only("mode", "nearest", "linear", "cubic"))
    how = Sampling(
        mode,
        coordinates,
        str(call.get("nearest_mode", "round_prefer_floor")),
        _cubic(float(call.get("cubic_coeff_a", -0.75))) if mode == "cubic" else _linear,
        2 if mode == "cubic" else 1,
        bool(call.get("antialias", 0)) and mode != "nearest",
        bool(call.get("exclude_outside", 0)),
    )
    y = _resized(x, axes, how, extrapolation if crops else None)
    return [_typed(y, x, mode)]


def _typed(y: Array, x: Array, mode: str) -> Array:
    """Of integers what is copied; what lies between two of them the text does not say."""
    if x.dtype.kind == "f":
        return y
    if mode != "nearest":
        raise Uncovered("integers between integers")
    return y.astype(x.dtype)


def _affine_grid(call: NodeCall) -> list[Array]:
    """Points from -1 to 1, evenly spaced: no number where corners are aligned and there is one."""
    theta, size = call.floats(), [int(n) for n in call.need(1)]
    aligned = bool(call.get("align_corners", 0))
    sides = []
    for n in size[2:]:
        steps = np.arange(n, dtype=np.float64)
        sides.append(-1 + 2 * steps / np.float64(n - 1) if aligned else (2 * steps + 1) / n - 1)
    grid = np.meshgrid(*sides, indexing="ij")
    points = np.stack([*reversed(grid), np.ones(size[2:])], axis=-1)
    return [np.einsum("nij,...j->n...i", theta, points)]


OPERATORS = {"Resize": _resize, "AffineGrid": _affine_grid}
