"""What a layer is given in its call besides the tensors it reads: masks, first states, switches.

Which arguments a kind takes is read from the signature of its `call`; a row by name says what is
drawn for one, so that a layer that a later Keras adds joins by itself. To teach a new argument,
add a row: a function of the call in the making that gives a value, in which tensors are references
to inputs, or None where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import REF, Json, Ref
from outvote.dialects.keras.mutate.masks import drawn_mask
from outvote.dialects.keras.mutate.turns import KindTurn
from outvote.dialects.keras.mutate.values import NESTED
from outvote.mutate import extremes

_EACH = 0.4  # of the arguments, in turns with some of them
_NO_MASK = 0.25  # of the tensors that a list of masks is for
_STATES = {"LSTM": 2, "GRU": 1, "SimpleRNN": 1}  # by the cell
# Parameters of kinds that have something to do in training, and do it without chance.
_TRAINED_ALIKE = frozenset({"momentum", "power_iterations", "dropout", "layer", "cell"})
_FULL_MASKS = ("Softmax",)  # whose mask tells of numbers, not of steps


@dataclass(frozen=True)
class ReadTensor:
    """A tensor that the layer reads: what is announced of it, and what comes."""

    announced: Sequence[int | None]
    array: Array

    def axes(self, count: int) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
        """The first axes behind the batch."""
        return tuple(self.announced[:count]), tuple(self.array.shape[1 : count + 1])


@dataclass(frozen=True)
class DrawnCall:
    """A call in the making."""

    kind: str
    joined: bool  # its tensors come as one list
    parameters: Mapping[str, Any]
    tensors: Sequence[ReadTensor]
    dtype: str
    rng: np.random.Generator
    take: Callable[[Sequence[int | None], Array, str], Ref]  # makes a new input

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def tensor(self, announced: Sequence[int | None], array: Array, dtype: str) -> Json:
        ref = self.take(announced, array, dtype)
        return {REF: [ref.producer, ref.index]}

    def mask(self, announced: Sequence[int | None], sizes: Sequence[int]) -> Json:
        batch = len(self.tensors[0].array)
        return self.tensor(announced, drawn_mask((batch, *sizes), self.rng), "bool")


Argument = Callable[[DrawnCall], Json]


def drawn_arguments(names: Sequence[str], call: DrawnCall, turn: KindTurn) -> dict[str, Json]:
    """Of the arguments that the layer takes, in turn: none, each alone, some, and all."""
    if not names:
        return {}
    alone = [(name,) for name in names]
    none: list[tuple[str, ...]] = [()] * (2 + len(names) // 2)
    chosen = [tuple(name for name in names if call.chance(_EACH)) for _ in names]
    some = chosen if len(names) > 2 else []
    card = turn.dealt("arguments", range(len(none) + len(alone) + len(some) + 1))
    wanted = [*none, *alone, *some, tuple(names)][card]
    drawn = {name: ARGUMENTS[name](call) for name in wanted}
    return {name: value for name, value in drawn.items() if value is not None}


def _mask(call: DrawnCall) -> Json:
    """One truth value for each step, or number; of several tensors a list, some without."""
    if call.joined:
        masks = [None if call.chance(_NO_MASK) else _of_steps(call, n) for n in _places(call)]
        return masks if any(mask is not None for mask in masks) else None
    first = call.tensors[0]
    if call.kind in _FULL_MASKS:
        return call.mask(*first.axes(len(first.announced)))
    return _of_steps(call, 0)


def _places(call: DrawnCall) -> range:
    return range(len(call.tensors))


def _mask_of(place: int) -> Argument:
    return lambda call: _of_steps(call, min(place, len(call.tensors) - 1))


def _of_steps(call: DrawnCall, place: int) -> Json:
    given = call.tensors[place]
    return call.mask(*given.axes(1)) if len(given.announced) > 1 else None


def _attention_mask(call: DrawnCall) -> Json:
    """Which step of the query sees which of the key; now and then for every head apart."""
    if any(len(given.announced) != 2 for given in call.tensors[:2]):
        return None
    (query, queries), (key, keys) = (given.axes(1) for given in call.tensors[:2])
    heads = (1,) if call.chance(0.2) else ()
    return call.mask((*heads, *query, *key), (*heads, *queries, *keys))


def _on(call: DrawnCall) -> Json:
    return True


def _initial_state(call: DrawnCall) -> Json:
    """A list of the states, in both directions, of all the cells."""
    nested = call.parameters.get("cell")
    if isinstance(nested, list):
        return [_states(call, *cell[NESTED]) for cell in nested]
    if nested is not None:
        return _states(call, *nested[NESTED])
    if call.kind == "Bidirectional":
        kind, parameters = call.parameters["layer"][NESTED]
        return [*_states(call, kind, parameters), *_states(call, kind, parameters)]
    return _states(call, call.kind, call.parameters) if call.kind in _STATES else None


def _states(call: DrawnCall, kind: str, parameters: Mapping[str, Any]) -> list[Json]:
    units = int(parameters["units"])
    shape = (len(call.tensors[0].array), units)
    return [_numbers(call, (units,), shape) for _ in range(_STATES[kind.removesuffix("Cell")])]


def _count_weights(call: DrawnCall) -> Json:
    """Legal where tokens are counted."""
    if call.parameters.get("output_mode") != "count":
        return None
    first = call.tensors[0]
    return _numbers(call, first.announced, first.array.shape)


def _numbers(call: DrawnCall, announced: Sequence[int | None], shape: Sequence[int]) -> Json:
    way = extremes.usual if call.chance(0.7) else extremes.FINITE[_any_way(call)]
    return call.tensor(announced, extremes.filled(way, shape, call.dtype, call.rng), call.dtype)


def _any_way(call: DrawnCall) -> int:
    return int(call.rng.integers(len(extremes.FINITE)))


ARGUMENTS: Mapping[str, Argument] = {
    "mask": _mask,
    "query_mask": _mask_of(0),
    "value_mask": _mask_of(1),
    "key_mask": _mask_of(2),
    "attention_mask": _attention_mask,
    "use_causal_mask": _on,
    "return_attention_scores": _on,
    "initial_state": _initial_state,
    "count_weights": _count_weights,
    "training": _on,  # where `drawable` has it
}


def drawable(
    named: Sequence[str], parameters: Sequence[str], without_chance: bool = False
) -> tuple[str, ...]:
    """Those of a call's arguments that can be drawn, by the names of its constructor's parameters.

    Training is worth a try where it changes what is computed, without chance: by statistics of the
    batch, or in another branch, as where something could be dropped. No rate of dropping is drawn.
    """
    trains = without_chance or not _TRAINED_ALIKE.isdisjoint(parameters)
    return tuple(name for name in named if name in ARGUMENTS and (trains or name != "training"))
