"""Tensors whose numbers do not lie one behind the other: each layout is a way to make such a one.

A tensor travels as plain numbers. So a layout is told as what is stored, and the calls that make
the tensor of it, which become part of the program.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import torch

Laid = tuple[Any, Callable[[Any], Any]]  # what is stored, and how the tensor is made of it
_SHARE = 0.3  # of the tensors


def laid_out(tensor: Any, chance: random.Random) -> Laid:
    """The tensor in a layout that it can have; mostly as it is."""
    fitting = [name for name, (fits, _) in LAYOUTS.items() if fits(tensor)]
    if not fitting or chance.random() >= _SHARE:
        return tensor, as_it_is
    return LAYOUTS[chance.choice(fitting)][1](tensor)


def as_it_is(tensor: Any) -> Any:
    return tensor


def _transposed(tensor: Any) -> Laid:
    return tensor.transpose(-1, -2).contiguous(), lambda x: x.transpose(-1, -2)


def _expanded(tensor: Any) -> Laid:
    """All rows are the first one, which is stored once."""
    shape = list(tensor.shape)
    return tensor[:1].contiguous(), lambda x: x.expand(shape)


def _offset(tensor: Any) -> Laid:
    """Behind a row that nobody reads."""
    return torch.cat([tensor[:1], tensor]), lambda x: x[1:]


def _strided(tensor: Any) -> Laid:
    """With a number that nobody reads behind each."""
    stored = torch.stack([tensor, tensor], -1).flatten(-2)
    return stored, lambda x: x[..., ::2]


def _flipped_order(tensor: Any) -> Laid:
    """The first axis is the quickest one."""
    order = list(range(tensor.ndim))[::-1]
    return tensor.permute(order).contiguous(), lambda x: x.permute(order)


def _channels_last(tensor: Any) -> Laid:
    form = torch.channels_last if tensor.ndim == 4 else torch.channels_last_3d
    return tensor, lambda x: x.contiguous(memory_format=form)


def _empty(tensor: Any) -> Laid:
    return tensor, lambda x: x[:0]


def _has_rows(tensor: Any) -> bool:
    return bool(tensor.ndim and tensor.numel())


LAYOUTS: Mapping[str, tuple[Callable[[Any], bool], Callable[[Any], Laid]]] = {
    "transposed": (lambda x: x.ndim > 1, _transposed),
    "expanded": (lambda x: _has_rows(x) and len(x) > 1, _expanded),
    "offset": (_has_rows, _offset),
    "strided": (_has_rows, _strided),
    "permuted": (lambda x: x.ndim > 2, _flipped_order),
    "channels_last": (lambda x: x.ndim in (4, 5), _channels_last),
    "empty": (_has_rows, _empty),
}
