"""Small programs in bulk: drawn, run, with all tensors shown, and cut into calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from outvote.core.arrays import Array
from outvote.core.batch import (
    CutGraphs,
    ExposeGraphs,
    GraphCase,
    GraphsCut,
    GraphsExposed,
    answers_in,
    cases_in,
    packed_cases,
)
from outvote.core.cuts import one_layer
from outvote.core.model import Layer, Model, Ref
from outvote.core.protocol import ModelRead
from outvote.core.states import State
from outvote.core.target import Outcome
from outvote.dialects.torch_export.nouns.node import operator_parts, tensors_of
from outvote.dialects.torch_export.nouns.program import program_in, written_program
from outvote.dialects.torch_export.workers.shared.engine import CallEngine


def case_of(read: ModelRead, feeds: Sequence[Array], signature: str = "") -> GraphCase:
    """A program as it travels."""
    model = read.model
    kinds = {layer.name: _operator(layer.kind) for layer in model.layers}
    leaves = tuple(kinds[ref.producer] for ref in model.outputs)
    return GraphCase(written_program(read), feeds, leaves, signature)


def run_program(engine: CallEngine, case: GraphCase) -> Sequence[State]:
    """What a program gives; raises what the target raises."""
    model = program_in(case.content).model
    try:
        return engine.whole(model, _fed(model, case.feeds))
    finally:
        engine.forget()


def _fed(model: Model, feeds: Sequence[Array]) -> list[State]:
    return [State.fed(array, item) for item, array in zip(model.inputs, feeds, strict=True)]


def expose_programs(request: ExposeGraphs) -> GraphsExposed:
    """The same programs; what every call gives is an output, in the order of the calls."""
    found = []
    for case in cases_in(request.cases):
        read = program_in(case.content)
        shown = replace(read.model, outputs=tuple(_given(read.model)))
        found.append(GraphCase(written_program(replace(read, model=shown)), case.feeds))
    return GraphsExposed(cases=packed_cases(found))


def _given(model: Model) -> list[Ref]:
    return [ref for layer in model.layers for ref in tensors_of(layer)]


def cut_programs(request: CutGraphs) -> GraphsCut:
    """Calls as programs, fed with what `answers` say that the calls before them gave."""
    cases = cases_in(request.cases)
    found, origins = [], []
    for number, (case, answer) in enumerate(
        zip(cases, answers_in(request.answers, len(cases)), strict=True)
    ):
        if answer.outcome is Outcome.OK:
            for one in _calls(case, answer.outputs):
                found.append(one)
                origins.append(number)
    return GraphsCut(cases=packed_cases(found), origins=tuple(origins))


def _calls(case: GraphCase, given: Sequence[Array]) -> Iterator[GraphCase]:
    read = program_in(case.content)
    model = read.model
    fed = [Ref(item.name) for item in model.inputs]
    types = {Ref(item.name): item.dtype for item in model.inputs}
    for name, forms in read.specs.items():
        types |= {Ref(name, place): dtype for place, (_, dtype) in enumerate(forms)}
    tensors = dict(zip((*fed, *_given(model)), (*case.feeds, *given), strict=True))
    for layer in model.layers:
        states = [State(tensors[r], None, types[r], None) for r in layer.refs()]
        alone, feeds = one_layer(model.dialect, layer, states)
        outputs = tuple(tensors_of(layer))
        specs = {layer.name: read.specs[layer.name]}
        shapes = [list(shape) for shape, _ in specs[layer.name]]
        whole = ModelRead(model=replace(alone, outputs=outputs), output_shapes=shapes, specs=specs)
        yield case_of(whole, feeds, _signature(layer, [state.dtype for state in states]))


def _operator(kind: str) -> str:
    """A kind without its overload."""
    return ".".join(operator_parts(kind)[:2])


def _signature(layer: Layer, read: Sequence[str]) -> str:
    """What tells causes apart at a glance: the overload, words among the arguments, types."""
    words = [_word(name, value) for name, value in sorted(layer.config.items())]
    return " ".join([layer.kind, *words, "of", *dict.fromkeys(read)])


def _word(name: str, value: Any) -> str:
    told = isinstance(value, str | bool | Mapping)
    return f"{name}={value}" if told else name
