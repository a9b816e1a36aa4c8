"""Ways to make a specimen smaller, on graphs computed here: what is left means the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.cuts import one_layer, owned
from outvote.core.model import REF, Input, Layer, Model, Ref, Weight
from outvote.core.specimen import Specimen, weights_for
from outvote.core.states import State
from outvote.dialects.keras.initial import are_as_made
from outvote.dialects.keras.reductions import (
    default_parameters,
    initial_weights,
    inner_layers,
    other_numbers,
    smaller_parameters,
)
from outvote.localize.whole_graph import prefix
from outvote.triage.minimise import minimise
from outvote.triage.reductions import (
    REDUCTIONS,
    _begun_at,
    _without,
    fewer_inputs,
    fewer_layers,
    fewer_outputs,
    plain_numbers,
    smaller_shapes,
)

COUNT = 3


def computed(specimen: Specimen) -> dict[str, Array]:
    """Every tensor of a specimen: Plus adds what it reads, Times multiplies by its factor."""
    names = [item.name for item in specimen.model.inputs]
    states: dict[str, Array] = dict(zip(names, specimen.inputs, strict=True))
    for layer in specimen.model.layers:
        read = [states[ref.producer] for ref in layer.refs()]
        total = np.sum(read, axis=0)
        states[layer.name] = total * layer.config.get("factor", 1)
    return states


def outputs_of(specimen: Specimen) -> list[Array]:
    states = computed(specimen)
    return [states[ref.producer] for ref in specimen.model.outputs]


@dataclass(frozen=True)
class Here:
    """A builder that needs no worker; tensors are computed here."""

    blobs: BlobStore

    def rebuilt(self, specimen: Specimen) -> Specimen | None:
        return specimen

    def defaults(self, specimen: Specimen) -> Mapping[str, Mapping[str, Any]]:
        return {layer.name: {"factor": 1, "note": ""} for layer in specimen.model.layers}

    def tensors(self, specimen: Specimen, names: Sequence[str]) -> dict[str, list[State]]:
        states = computed(specimen)
        return {name: [State(states[name])] for name in names}


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(BlobStore(tmp_path))


def layer_of(name: str, reads: Sequence[str], **config: Any) -> Layer:
    kind = "Plus" if len(reads) > 1 else "Times"
    args = [[{REF: [read, 0]} for read in reads]] if len(reads) > 1 else [{REF: [reads[0], 0]}]
    return Layer(name, kind, {"name": name, **config}, args)


def model_of(layers: Sequence[Layer], outputs: Sequence[str], inputs: int = 2) -> Model:
    given = tuple(Input(f"in{i}", (None, 4), "float64") for i in range(inputs))
    return Model("m", given, tuple(layers), tuple(map(Ref, outputs)), "keras")


@st.composite
def graphs(draw: Any) -> Specimen:
    """A few layers that read what came before them, inputs of two kinds, one or two outputs."""
    known = ["in0", "in1"]
    layers = []
    for number in range(draw(st.integers(1, 7))):
        reads = draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique=True))
        layers.append(layer_of(f"l{number}", reads, factor=draw(st.integers(-3, 3))))
        known.append(f"l{number}")
    last = layers[-1].name
    more = draw(st.sampled_from([layer.name for layer in layers]))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    inputs = tuple(rng.integers(-9, 9, (COUNT, 4)).astype(np.float64) for _ in range(2))
    return Specimen(model_of(layers, list(dict.fromkeys([last, more]))), inputs)


def builder() -> Here:
    """For graphs that Hypothesis draws: they have no weights, so that nothing is written."""
    return Here(BlobStore(Path("/nonexistent")))


@given(graphs(), st.data())
def test_a_model_begun_later_gives_the_same(specimen: Specimen, data: Any) -> None:
    position = data.draw(st.integers(0, len(specimen.model.layers) - 1))
    begun = _begun_at(specimen, position, builder())
    left = {layer.name for layer in specimen.model.layers[position:]}
    if any(ref.producer not in left for ref in specimen.model.outputs):
        assert begun is None  # an output is computed before
        return
    assert begun is not None
    assert [layer.name for layer in begun.model.layers] == [
        layer.name for layer in specimen.model.layers[position:]
    ]
    for before, after in zip(outputs_of(specimen), outputs_of(begun), strict=True):
        np.testing.assert_array_equal(before, after)


@given(graphs(), st.data())
def test_a_model_cut_off_earlier_computes_what_it_still_holds(
    specimen: Specimen, data: Any
) -> None:
    position = data.draw(st.integers(0, len(specimen.model.layers) - 1))
    cut = prefix(specimen.model, position)
    end = specimen.model.layers[position].name
    assert [ref.producer for ref in cut.outputs] == [end]
    used = [specimen.model.inputs.index(item) for item in cut.inputs]
    small = Specimen(cut, tuple(specimen.inputs[i] for i in used))
    np.testing.assert_array_equal(outputs_of(small)[0], computed(specimen)[end])


@given(graphs())
def test_what_is_smaller_is_a_whole_model_that_reads_all_its_inputs(specimen: Specimen) -> None:
    size = len(specimen.model.layers)
    for candidate in fewer_layers(specimen, builder()):
        assert len(candidate.model.layers) < size
        read = {name for layer in candidate.model.layers for name in layer.inputs}
        assert {item.name for item in candidate.model.inputs} <= read
        assert len(candidate.inputs) == len(candidate.model.inputs)
        assert all(len(output) == COUNT for output in outputs_of(candidate))


@given(graphs())
def test_one_output_alone_is_what_it_was(specimen: Specimen) -> None:
    whole = dict(zip(specimen.model.outputs, outputs_of(specimen), strict=True))
    found = list(fewer_outputs(specimen, builder()))
    assert len(found) == (len(whole) if len(whole) > 1 else 0)
    for candidate in found:
        (ref,) = candidate.model.outputs
        np.testing.assert_array_equal(outputs_of(candidate)[0], whole[ref])


@given(graphs())
def test_fewer_instances_are_answered_as_before(specimen: Specimen) -> None:
    (first, *_) = outputs_of(specimen)
    rows = [outputs_of(candidate)[0] for candidate in fewer_inputs(specimen, builder())]
    np.testing.assert_array_equal(np.concatenate(rows[:COUNT]), first)  # one by one
    np.testing.assert_array_equal(np.concatenate(rows[COUNT:]), first)  # in halves


def test_one_instance_cannot_become_fewer(here: Here) -> None:
    specimen = Specimen(model_of([layer_of("a", ["in0"])], ["a"], 1), (np.ones((1, 4)),))
    assert list(fewer_inputs(specimen, here)) == []


def test_a_layer_is_taken_out_where_it_reads_one_tensor_and_nobody_shares_it() -> None:
    first, second = layer_of("a", ["in0"], factor=2), layer_of("b", ["a"], factor=3)
    model = model_of([first, second, layer_of("c", ["a", "b"])], ["c"], 1)
    without = _without(model, second)
    assert without is not None
    assert [layer.name for layer in without.layers] == ["a", "c"]
    assert [ref.producer for ref in without.layers[-1].refs()] == ["a", "a"]
    assert _without(model, model.layer("c")) is None  # reads two
    shared = replace(layer_of("b", ["a"]), shares="a")
    assert _without(model_of([first, shared], ["b"], 1), first) is None


def test_the_first_call_that_is_left_of_a_shared_layer_owns_it() -> None:
    calls = [
        layer_of("a", ["in0"]),
        replace(layer_of("b", ["a"]), shares="a"),
        replace(layer_of("c", ["b"]), shares="a"),
    ]
    assert [layer.shares for layer in owned(calls)] == [None, "a", "a"]
    assert [layer.shares for layer in owned(calls[1:])] == [None, "b"]


def test_shapes_become_smaller_together_and_one_by_one_and_never_the_batch(here: Here) -> None:
    specimen = Specimen(
        model_of([layer_of("a", ["in0", "in1"])], ["a"]), (np.ones((3, 4)), np.ones((3, 4)))
    )
    shapes = [
        tuple(array.shape for array in candidate.inputs)
        for candidate in smaller_shapes(specimen, here)
    ]
    assert {((3, n), (3, n)) for n in (1, 2, 3)} <= set(shapes)
    assert {((3, 1), (3, 4)), ((3, 4), (3, 1))} <= set(shapes)
    assert all(rows == 3 for pair in shapes for rows, _ in pair)
    announced = [c.model.inputs[0].shape for c in smaller_shapes(specimen, here)]
    assert set(announced) <= {(None, n) for n in (1, 2, 3, 4)}


def test_what_is_cut_keeps_infinity_in_it(here: Here) -> None:
    array = np.zeros((1, 6))
    array[0, 4] = np.inf
    specimen = Specimen(model_of([layer_of("a", ["in0"])], ["a"], 1), (array,))
    for candidate in smaller_shapes(specimen, here):
        assert np.isinf(candidate.inputs[0]).any()


def test_numbers_become_plain_one_array_at_a_time_weights_too(here: Here) -> None:
    weight = np.array([[0.1234, 5.6789]])
    digest = here.blobs.put(weight)
    layer = replace(layer_of("a", ["in0"]), weights=(Weight("w", digest, (1, 2)),))
    given_array = np.array([[0.5678, -1.25]])
    specimen = Specimen(model_of([layer], ["a"], 1), (given_array,))
    inputs: list[tuple[Array, Array]] = []
    weights: list[tuple[Array, Array]] = []
    for candidate in plain_numbers(specimen, here):
        (found,) = candidate.inputs
        stored = here.blobs.get(candidate.model.layers[0].weights[0].digest)
        assert (found is given_array) != np.array_equal(stored, weight), "one at a time"
        (weights if found is given_array else inputs).append((found, stored))
    assert inputs[0][0].tolist() == [[0, 0]]
    assert inputs[-1][0].tolist() == [[0.57, -1.25]]
    assert weights[1][1].tolist() == [[1, 1]]
    assert weights[-1][1].tolist() == [[0.12, 5.68]]


def test_what_is_plain_already_has_nothing_plainer_than_itself(here: Here) -> None:
    ones = Specimen(model_of([layer_of("a", ["in0"])], ["a"], 1), (np.ones((2, 4)),))
    plainer = [candidate.inputs[0].tolist() for candidate in plain_numbers(ones, here)]
    assert plainer == [np.zeros((2, 4)).tolist()]
    zeros = ones.with_inputs([np.zeros((2, 4))])
    assert list(plain_numbers(zeros, here)) == []
    whole = ones.with_inputs([np.ones((2, 4), np.int64)])
    assert list(plain_numbers(whole, here)) == []


def test_weights_go_to_what_the_layer_makes_them_and_stay_there(here: Here) -> None:
    made = {"gamma_initializer": {"class_name": "Ones"}, "beta_initializer": "zeros"}
    arrays = {"gamma": np.full(3, 0.7), "beta": np.full(3, 0.3), "kernel": np.full(3, 2.5)}
    weights = tuple(Weight(n, here.blobs.put(a), a.shape) for n, a in arrays.items())
    layer = replace(layer_of("a", ["in0"], **made), weights=weights)

    def held(specimen: Specimen) -> list[list[float]]:
        return [np.asarray(here.blobs.get(w.digest)).tolist() for w in specimen.last.weights]

    (found,) = initial_weights(alone(layer), here)
    assert held(found) == [[1, 1, 1], [0, 0, 0], [2.5, 2.5, 2.5]]
    assert list(initial_weights(found, here)) == []
    plainer = [held(one) for one in other_numbers(found, here)]
    assert all(one[:2] == [[1, 1, 1], [0, 0, 0]] for one in plainer)
    assert [0, 0, 0] in [one[2] for one in plainer]
    assert not are_as_made(found.last, [np.ones(3), np.zeros(3), np.zeros(3)])
    no_kernel = replace(found.last, weights=found.last.weights[:2])
    assert are_as_made(no_kernel, [np.ones(3), np.zeros(3)])
    assert not are_as_made(no_kernel, [np.ones(3), np.ones(3)])
    forgets = replace(no_kernel, config={**no_kernel.config, "unit_forget_bias": True})
    assert not are_as_made(forgets, [np.ones(3), np.zeros(3)])


# Parameters of layers


def alone(layer: Layer) -> Specimen:
    return Specimen(model_of([layer], [layer.name], 1), (np.ones((1, 4)),))


def configs(candidates: Iterator[Specimen]) -> list[dict[str, Any]]:
    return [dict(candidate.last.config) for candidate in candidates]


def test_parameters_go_to_their_defaults_boldly_and_then_one_by_one(here: Here) -> None:
    layer = layer_of("a", ["in0"], factor=3, note="loud", dtype="float16")
    found = configs(default_parameters(alone(layer), here))
    plain = {"name": "a", "factor": 3, "note": "loud", "dtype": "float16"}
    assert found == [
        {**plain, "dtype": "float32"},
        {**plain, "factor": 1, "note": ""},
        {**plain, "factor": 1},
        {**plain, "note": ""},
    ]


def test_a_seed_has_no_default_to_go_to(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = layer_of("a", ["in0"], factor=3, note="loud", seed=7)
    told = {"a": {"factor": 3, "note": "loud", "seed": 8}}  # another one whenever it is asked for
    monkeypatch.setattr(Here, "defaults", lambda self, specimen: told)
    assert configs(default_parameters(alone(layer), here)) == []


@pytest.mark.parametrize(
    ("value", "smaller"),
    [
        (7, [1, 2, 3]),
        (8, [1, 2, 3, 4]),
        (2, [1]),
        (1, []),
        (True, []),
        (0.3, [1.0, 2.0, 0.5]),
        (0.5, []),
        ([3, 3], [[1, 1], [2, 2], [1, 3], [2, 3], [3, 1], [3, 2]]),
        ("same", []),
        (None, []),
    ],
)
def test_sizes_become_as_small_as_they_can(here: Here, value: Any, smaller: list[Any]) -> None:
    found = configs(smaller_parameters(alone(layer_of("a", ["in0"], size=value)), here))
    assert [config["size"] for config in found] == smaller


def test_sizes_of_a_layer_inside_become_smaller_and_what_is_no_size_stays(here: Here) -> None:
    inner = {"class_name": "Dense", "config": {"units": 2, "name": "d"}, "build_config": {"a": 1}}
    layer = layer_of("a", ["in0"], layer=inner, axis=3, factor=1, kernel_initializer=5)
    (found,) = configs(smaller_parameters(alone(layer), here))
    assert found["layer"] == {
        "class_name": "Dense", "config": {"units": 1, "name": "d"}, "build_config": None,
    }  # fmt: skip
    assert (found["axis"], found["factor"], found["kernel_initializer"]) == (3, 1, 5)


def test_what_is_wrapped_and_the_activation_stand_for_the_whole_layer(here: Here) -> None:
    inner = {"class_name": "Dense", "config": {"units": 2, "name": "d"}}
    layer = layer_of("a", ["in0"], layer=inner, activation="relu", dtype="float16")
    wrapped, activation = inner_layers(alone(layer), here)
    assert (wrapped.last.kind, dict(wrapped.last.config)) == (
        "Dense",
        {"units": 2, "name": "a", "dtype": "float16"},
    )
    assert (activation.last.kind, dict(activation.last.config)) == (
        "Activation",
        {"activation": "relu", "name": "a", "dtype": "float16"},
    )
    linear = layer_of("a", ["in0"], activation="linear")
    assert list(inner_layers(alone(linear), here)) == []
    two = Specimen(
        model_of([layer_of("a", ["in0"]), layer_of("b", ["a"])], ["b"], 1), (np.ones(1),)
    )
    assert list(inner_layers(two, here)) == []


# Layers alone, and the minimum


def test_a_layer_alone_takes_its_tensors_and_masks_as_inputs() -> None:
    layer = Layer("a", "Plus", {}, [[{REF: ["p", 1]}, {REF: ["q", 0]}]], {"scale": {REF: ["p", 0]}})
    mask = np.ones((2, 4), bool)
    states = [State(np.zeros((2, 4)), mask), State(np.ones((2, 3))), State(np.ones((2, 1)))]
    model, arrays = one_layer("keras", layer, states)
    assert [item.name for item in model.inputs] == ["x0", "x1", "x2", "x3"]
    assert [item.shape for item in model.inputs] == [(None, 4), (None, 3), (None, 1), (None, 4)]
    (only,) = model.layers
    assert only.args == [[{REF: ["x0", 0]}, {REF: ["x1", 0]}]]
    assert only.kwargs["scale"] == {REF: ["x2", 0]}
    assert only.kwargs["mask"] == [{REF: ["x3", 0]}, None]
    assert arrays[3] is mask


def test_weights_are_fitted_by_place_or_by_name(here: Here) -> None:
    kernel, bias = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    layer = replace(
        layer_of("a", ["in0"]),
        weights=(
            Weight("kernel", here.blobs.put(kernel), (2, 3)),
            Weight("bias", here.blobs.put(bias), (3,)),
        ),
    )
    wanted = [("k", (1, 2), "float64"), ("b", (4,), "float32")]
    first, second = weights_for(layer, wanted, here.blobs)
    assert here.blobs.get(first.digest).tolist() == [[0, 1]]
    assert here.blobs.get(second.digest).tolist() == [0, 1, 2, 0]
    assert here.blobs.get(second.digest).dtype == np.float32
    (named,) = weights_for(layer, [("bias", (2,), "float64")], here.blobs)
    assert here.blobs.get(named.digest).tolist() == [0, 1]
    (new,) = weights_for(layer, [("scale", (2,), "bfloat16")], here.blobs)
    assert here.blobs.get(new.digest).tolist() == [0, 0]


@given(graphs(), st.integers(-3, 3))
def test_what_is_minimal_has_no_smaller_candidate_that_shows_it(
    specimen: Specimen, factor: int
) -> None:
    def shows(candidate: Specimen) -> bool:
        return any(layer.config["factor"] == factor for layer in candidate.model.layers)

    if not shows(specimen):
        return
    ways = [way for way in REDUCTIONS if way is not plain_numbers]
    blobs = _Memory()
    found = minimise(specimen, shows, Here(blobs), 60.0, ways)  # type: ignore[arg-type]
    assert found.complete
    assert shows(found.specimen)
    assert len(found.specimen.model.layers) == 1
    assert found.specimen.count == 1
    for way in ways:
        assert not any(shows(c) for c in way(found.specimen, Here(blobs)))  # type: ignore[arg-type]


class _Memory:
    """A store of blobs that writes nothing: a key is all that the minimiser needs."""

    def put(self, array: Array) -> str:
        return f"{array.shape}{array.tobytes().hex()}"
