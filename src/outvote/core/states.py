"""Tensors with their masks, as they travel between the driver and a worker."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.core.arrays import Array

State = tuple[Array, Array | None]  # a tensor and its mask


def pack(states: Sequence[State]) -> tuple[list[bool], list[Array]]:
    """States as (which have a mask, flat arrays: each tensor before its mask)."""
    flat = [part for state in states for part in state if part is not None]
    return [mask is not None for _, mask in states], flat


def unpack(masked: Sequence[bool], arrays: Sequence[Array]) -> list[State]:
    """The states that `pack` made flat."""
    queue = list(arrays)
    return [(queue.pop(0), queue.pop(0) if has_mask else None) for has_mask in masked]
