"""Runs one input through several targets in step, layer by layer, and hands over each layer.

Only tensors that a later layer still needs are held, so that memory does not grow with depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outvote.core.arrays import Array
from outvote.core.model import Layer, Model
from outvote.core.outputs import Outputs
from outvote.core.states import State, pack, unpack
from outvote.core.target import Run
from outvote.run.pool import Pool, Request


@dataclass(frozen=True)
class Step:
    """What every target made of one layer.

    `own`: from its own tensors, errors of earlier layers included. `isolated`: from the
    reference's tensors, so that only this layer can differ. `failed`: could not compute that.
    `lost`: targets whose session is gone, through no fault of this layer; no more is heard of them.
    """

    layer: Layer
    given: tuple[State, ...]
    own: Mapping[str, Outputs]
    isolated: Mapping[str, Outputs]
    failed: Mapping[str, Run] = field(default_factory=dict)
    lost: Mapping[str, Run] = field(default_factory=dict)


def steps(
    pool: Pool, model: Model, inputs: Sequence[Array], reference: str, others: Sequence[str]
) -> Iterator[Step]:
    """Every layer in order. A target that fails a layer is left out from there on.

    Where the reference fails, the last step holds nothing but that. A worker that died between two
    steps, as when its noise was measured, has been replaced by one without a session: it is lost.
    """
    alive = [reference, *others]
    opened = pool.ask_all(alive, Request("open", {"model": model.to_json()}, inputs))
    if not opened[reference].ok:
        yield Step(model.layers[0], (), {}, {}, {}, {reference: opened[reference]})
        return
    alive = [name for name in others if opened[name].ok]
    lost = {name: opened[name] for name in others if not opened[name].ok}
    workers = dict(pool.restarts)

    def is_lost(name: str) -> bool:
        return pool.restarts.get(name) != workers.get(name)

    held: dict[str, list[State]] = {
        item.name: [(array, None)] for item, array in zip(model.inputs, inputs, strict=True)
    }
    last_use = model.last_use()
    for position, layer in enumerate(model.layers):
        first = pool.ask(reference, Request("step", {"layer": layer.name, "given": None}))
        if not first.ok:
            told = {reference: first}
            failed, lost = ({}, told) if is_lost(reference) else (told, {})
            yield Step(layer, (), {}, {}, failed, lost)
            return
        given = tuple(held[ref.producer][ref.index] for ref in layer.refs())
        held[layer.name] = unpack(first.reply["own"], first.arrays)
        header, arrays = pack(given)
        request = Request("step", {"layer": layer.name, "given": header}, arrays)
        runs = pool.ask_all(alive, request)
        own, isolated = _outputs(first, "own"), {}
        result = {reference: own}
        for name, run in runs.items():
            if run.ok:
                if run.reply["own"]:
                    result[name] = _outputs(run, "own")
                isolated[name] = _outputs(run, "isolated")
        lost |= {name: run for name, run in runs.items() if not run.ok and is_lost(name)}
        failed = {name: run for name, run in runs.items() if not run.ok and name not in lost}
        alive = [name for name in alive if name not in failed and name not in lost]
        yield Step(layer, given, result, {reference: own, **isolated}, failed, lost)
        lost = {}
        for producer in layer.inputs:
            if last_use[producer] == position:
                del held[producer]
    pool.ask_all([reference, *alive], Request("close", {}))


def call_alone(
    pool: Pool, names: Sequence[str], layer: Layer, given: Sequence[State]
) -> dict[str, Outputs]:
    """One layer on given tensors, inside an open session; targets that fail are left out."""
    runs = run_alone(pool, names, layer, given)
    return {name: _outputs(run, "isolated") for name, run in runs.items() if run.ok}


def run_alone(
    pool: Pool, names: Sequence[str], layer: Layer, given: Sequence[State]
) -> dict[str, Run]:
    """One layer on given tensors, inside an open session, on each target."""
    header, arrays = pack(given)
    return pool.ask_all(names, Request("call", {"layer": layer.name, "given": header}, arrays))


def alone(pool: Pool, names: Sequence[str], model: Model, given: Sequence[State]) -> Step:
    """A model of one layer, given its tensors, on each target; the session stays open."""
    layer = model.layers[0]
    arrays = [array for array, _ in given]
    opened = pool.ask_all(names, Request("open", {"model": model.to_json()}, arrays))
    ready = [name for name in names if opened[name].ok]
    runs = run_alone(pool, ready, layer, given)
    failed = {name: run for name, run in {**opened, **runs}.items() if not run.ok}
    outputs = {name: _outputs(run, "isolated") for name, run in runs.items() if run.ok}
    return Step(layer, tuple(given), {}, outputs, failed)


def _outputs(run: Run, key: str) -> Outputs:
    """The layer's outputs without masks; own ones come first in the reply."""
    own: list[Any] = run.reply.get("own", [])
    skipped = sum(1 + has_mask for has_mask in own) if key == "isolated" else 0
    states = unpack(run.reply[key], run.arrays[skipped:])
    dtypes = (
        run.reply.get("own_dtypes", run.reply["dtypes"]) if key == "own" else run.reply["dtypes"]
    )
    return Outputs(tuple(array for array, _ in states), tuple(dtypes))
