"""Where a difference begins that only the whole graph shows: a search over cut-off models."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.bench.noise import asking, choose_instruments, measured
from outvote.core.arrays import Array
from outvote.core.cuts import ended_at
from outvote.core.model import Layer, Model, Ref
from outvote.core.outputs import Outputs
from outvote.judge.compare import Settings
from outvote.judge.rounding import model_rounding
from outvote.run.pool import Pool


def first_deviating_layer(
    pool: Pool, model: Model, inputs: Sequence[Array], targets: tuple[str, str], settings: Settings
) -> Layer | None:
    """The first layer after which a model that is cut off differs; None if none does.

    Each cut is compiled as one graph, and held to its own noise. The search halves the model, so
    that it takes a difference to stay once it is there, as differences do that reach the output:
    a cut gives all tensors that are read behind it, in one of which the difference must be. A cut
    that one of the two cannot run is no evidence: where one is met, no layer is named.
    """

    def deviates(position: int) -> bool | None:
        cut = _front(model, position)
        found = asking(pool, cut, inputs, targets)([None])[0]
        if len(found) < len(targets):
            return None
        return not _agree(pool, cut, inputs, found, settings)

    low, high = 0, len(model.layers) - 1
    if not deviates(high):
        return None
    while low < high:
        middle = (low + high) // 2
        parted = deviates(middle)
        if parted is None:
            return None
        low, high = (low, middle) if parted else (middle + 1, high)
    return model.layers[low]


def _agree(
    pool: Pool, cut: Model, inputs: Sequence[Array], found: dict[str, Outputs], settings: Settings
) -> bool:
    """Whether rounding explains what parts two targets on one cut."""
    rounding = model_rounding(found.values(), settings)
    a, b = found.values()
    if rounding.explains(a, b):
        return True
    instruments = choose_instruments({name: pool.targets[name] for name in found})
    plain = {name: found[name] for name in instruments}
    ask = asking(pool, cut, inputs, instruments)
    return measured(rounding, found, ask, plain).explains(a, b)


def prefix(model: Model, position: int) -> Model:
    """The model cut off after one layer: what that layer needs, and no more."""
    return ended_at(model, Ref(model.layers[position].name))


def _front(model: Model, position: int) -> Model:
    """The model cut off after one layer, with all that is read of it behind the cut."""
    made = {layer.name for layer in model.layers[: position + 1]}
    later = [ref for layer in model.layers[position + 1 :] for ref in layer.refs()]
    read = [ref for ref in (*model.outputs, *later) if ref.producer in made]
    return ended_at(model, Ref(model.layers[position].name), *read)
