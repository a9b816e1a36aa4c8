"""What the gradients of a target's own layers come to, from the last layer to the first.

The chain rule by hand: where a target's gradients of a whole model are just that, and no layer
alone differs between targets, the whole differs by rounding that earlier layers pass on. It may
come to much: where it moves a number over a kink, such as 0 of a ReLU, a slope is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.exercise import Exercised, do, rounding_of
from outvote.core.arrays import Array
from outvote.core.exercises import Pull, loss_pull
from outvote.core.model import Layer, Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.core.train_protocol import Leaf
from outvote.localize.reverse import GradientChain, hidden_of, pull_of

States = tuple[State, ...]
Place = tuple[str, int]  # of a leaf: its layer, empty for inputs, and its place there


def is_composed(bench: Bench, done: Exercised, is_regularised: Callable[[Layer], bool]) -> bool:
    """Whether every target's gradients of a model and its loss are what its layers' come to."""
    whole = done.exercise
    if not isinstance(whole, Pull) or whole.loss is None or whole.truth is None:
        return False
    rounding, told = rounding_of(bench, done, "gradient", whole=True), done.outputs("gradient")

    def holds(name: str) -> bool:
        found = _composed(bench, whole, name, is_regularised)
        return found is not None and rounding.explains(
            told[name], _in_order(found, whole, done.replies[name].gradients, told[name])
        )

    threads = ThreadPoolExecutor(len(told))
    try:
        return all(threads.map(holds, told))
    except KeyboardInterrupt:  # whoever waits in a thread is told nothing of it
        bench.pool.close()
        raise
    finally:
        threads.shutdown(cancel_futures=True)


def _composed(
    bench: Bench, whole: Pull, name: str, is_regularised: Callable[[Layer], bool]
) -> dict[Place, Array] | None:
    """Gradients by leaf; None where a layer cannot be asked."""
    model = whole.model
    held, failed = hidden_of(bench, model, whole.inputs, name)
    if failed is not None or whole.loss is None or whole.truth is None:
        return None
    for layer in model.layers:
        held[layer.name] = _as_differentiated(bench, model, layer, held, name)
    end = model.outputs[0]
    state = held[end.producer][end.index]
    given = model.dialect, state.array, state.dtype, whole.loss, whole.truth, whole.sample_weight
    loss = do(bench, loss_pull(*given), [name]).replies.get(name)
    if loss is None or not loss.gradients or loss.gradients[0].array is None:
        return None
    chain = GradientChain(bench, model, held, name, {end: loss.gradients[0].array})
    found: dict[Place, Array] = {}
    for layer in reversed(model.layers):
        done = chain.step(layer, whole.penalty and is_regularised(layer) and layer.shares is None)
        if done is None:
            continue
        if name not in done.replies:
            return None
        for leaf in done.replies[name].gradients:
            if leaf.layer and leaf.array is not None:
                owned = layer.shares or layer.name, leaf.place
                found[owned] = found[owned] + leaf.array if owned in found else leaf.array
    for place, item in enumerate(model.inputs):
        if Ref(item.name) in chain.cotangents:
            found["", place] = chain.cotangents[Ref(item.name)]
    return found


def _as_differentiated(
    bench: Bench, model: Model, layer: Layer, held: Mapping[str, States], name: str
) -> States:
    """What a layer gives where it is differentiated: some libraries fuse other operations then."""
    states = held[layer.name]
    ones = {
        Ref(layer.name, place): np.ones_like(state.array)
        for place, state in enumerate(states)
        if state.array.dtype.kind == "f"
    }
    pull = pull_of(model, layer, held, ones)
    reply = do(bench, pull, [name]).replies.get(name) if pull is not None else None
    if reply is None:
        return states
    given = zip(states, reply.outputs.arrays, strict=True)
    return tuple(replace(state, array=array) for state, array in given)


def _in_order(
    found: dict[Place, Array], whole: Pull, leaves: Sequence[Leaf], told: Outputs
) -> Outputs:
    """As the gradients of the whole are told; what nothing comes to is zero."""
    arrays = tuple(
        found.get((leaf.layer, leaf.place), np.zeros(whole.shape(leaf), array.dtype))
        for leaf, array in zip(leaves, told.arrays, strict=True)
    )
    return Outputs(arrays, told.dtypes, told.batch)
