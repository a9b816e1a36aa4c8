"""Arguments of calls: drawn by the signature, run, saved, made smaller, written into scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import REF, Input, Layer, Model, Ref, find_refs
from outvote.core.protocol import ListKinds, Read, RunModel, Save
from outvote.core.specimen import Specimen
from outvote.core.states import State
from outvote.dialects.keras.mutate.arguments import ARGUMENTS, DrawnCall, ReadTensor, drawable
from outvote.dialects.keras.mutate.catalogue import Catalogue
from outvote.dialects.keras.mutate.maker import Maker
from outvote.dialects.keras.mutate.rules import again, free
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.mutate.values import NESTED
from outvote.dialects.keras.reductions import fewer_arguments
from outvote.dialects.keras.reference import reference
from outvote.dialects.keras.relations import couples_instances
from outvote.dialects.keras.relations.linear import is_linear
from outvote.dialects.keras.script import CallWriter
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Subject
from outvote.run.pool import Pool, asker
from outvote.run.settle import ask_settled
from outvote.triage.reductions import smaller_shapes

SEQUENCE = ReadTensor((6, 4), np.zeros((2, 6, 4), np.float32))


def drawn(
    name: str, kind: str, parameters: Mapping[str, Any], tensors: Sequence[ReadTensor]
) -> tuple[Any, list[Array]]:
    """What one row gives, and the tensors that it made."""
    made: list[Array] = []

    def take(announced: Sequence[int | None], array: Array, dtype: str) -> Ref:
        assert len(announced) == array.ndim - 1
        made.append(array)
        return Ref(f"x{len(made)}")

    joined = len(tensors) > 1 and not kind.startswith("Multi")
    rng = np.random.default_rng(3)
    call = DrawnCall(kind, joined, parameters, tensors, "float32", rng, take)
    return ARGUMENTS[name](call), made


def test_masks_are_for_steps_or_for_numbers_or_for_each_of_several_tensors() -> None:
    _, (mask,) = drawn("mask", "LSTM", {}, [SEQUENCE])
    assert mask.shape == (2, 6)
    assert mask.dtype == bool
    _, (full,) = drawn("mask", "Softmax", {}, [SEQUENCE])
    assert full.shape == (2, 6, 4)
    listed, made = drawn("mask", "Attention", {}, [SEQUENCE, SEQUENCE, SEQUENCE])
    assert len(listed) == 3
    assert len(made) == sum(item is not None for item in listed)
    assert drawn("mask", "BatchNormalization", {}, [ReadTensor((4,), np.zeros((2, 4)))]) == (
        None,
        [],
    )


def test_an_attention_mask_says_which_query_sees_which_key() -> None:
    longer = ReadTensor((None, 4), np.zeros((2, 7, 4), np.float32))
    _, (mask,) = drawn("attention_mask", "MultiHeadAttention", {}, [SEQUENCE, longer])
    assert mask.shape[-2:] == (6, 7)


LSTM = {NESTED: ["LSTMCell", {"units": 3}]}
GRU = {NESTED: ["GRUCell", {"units": 2}]}


@pytest.mark.parametrize(
    ("kind", "parameters", "sizes"),
    [
        ("LSTM", {"units": 5}, [5, 5]),
        ("SimpleRNN", {"units": 5}, [5]),
        ("Bidirectional", {"layer": {NESTED: ["GRU", {"units": 2}]}}, [2, 2]),
        ("RNN", {"cell": [LSTM, GRU]}, [3, 3, 2]),
        ("RNN", {"cell": LSTM}, [3, 3]),
        ("ConvLSTM1D", {"filters": 2}, []),
    ],
)
def test_first_states_are_those_of_all_cells(
    kind: str, parameters: Mapping[str, Any], sizes: list[int]
) -> None:
    value, made = drawn("initial_state", kind, parameters, [SEQUENCE])
    assert [array.shape for array in made] == [(2, size) for size in sizes]
    assert len(list(find_refs(value))) == len(sizes)


def test_training_is_drawn_where_it_means_something_and_nothing_is_drawn_by_chance() -> None:
    assert drawable(["training", "mask", "unheard_of"], ["momentum"]) == ("training", "mask")
    assert drawable(["training"], ["rate", "seed"]) == ()


def one_call(kind: str, config: Mapping[str, Any] | None = None, **kwargs: Any) -> Layer:
    named = {"name": "it", **(config or {})}
    return Layer("it", kind, named, [{REF: ["x0", 0]}], kwargs, origin={"module": "keras.layers"})


def test_what_learns_of_its_batch_couples_instances_and_is_not_linear() -> None:
    trained, plain = (one_call("BatchNormalization", training=flag) for flag in (True, False))
    assert couples_instances(trained)
    assert not couples_instances(plain)
    assert not is_linear(trained)
    assert is_linear(plain)


def test_the_reference_knows_the_statistics_of_a_batch_and_what_never_drops() -> None:
    rng = np.random.default_rng(0)
    x, mask = rng.normal(size=(3, 4, 2)), rng.random((3, 4)) < 0.6
    weights = [np.ones(2), np.zeros(2), np.full(2, 9.0), np.full(2, 9.0)]
    layer = one_call("BatchNormalization", {"epsilon": 0.0}, mask={REF: ["m", 0]}, training=True)
    found = reference(layer, weights, [State(x), State(mask)])
    assert found is not None
    seen = x[mask]
    np.testing.assert_allclose(found[0], (x - seen.mean(0)) / seen.std(0))

    cell = [np.ones((2, 3)), np.ones((3, 3)), np.zeros(3)]
    sizes = {"units": 3, "activation": "tanh", "use_bias": True}
    same = [
        reference(
            one_call("SimpleRNN", {**sizes, "dropout": rate}, training=training), cell, [State(x)]
        )
        for rate, training in ((0.0, True), (0.0, False), (0.5, True))
    ]
    assert same[2] is None
    assert same[0] is not None
    assert same[1] is not None
    np.testing.assert_array_equal(same[0][0], same[1][0])


def masked_specimen() -> Specimen:
    inputs = (Input("x0", (None, 4, 2), "float32"), Input("x1", (None, 4), "bool"))
    layer = one_call("LSTM", mask={REF: ["x1", 0]}, training=False)
    model = Model("m", inputs, (layer,), (Ref("it"),), "keras")
    return Specimen(model, (np.zeros((2, 4, 2), np.float32), np.ones((2, 4), bool)))


@dataclass(frozen=True)
class Here:
    """A builder that builds nothing."""

    blobs: BlobStore

    def rebuilt(self, specimen: Specimen) -> Specimen:
        return specimen

    def defaults(self, specimen: Specimen) -> dict[str, Any]:
        return {}

    def tensors(self, specimen: Specimen, names: Sequence[str]) -> dict[str, list[State]]:
        return {}


def test_a_call_is_made_smaller_by_its_arguments_and_masks_stay_as_long_as_what_they_mask(
    tmp_path: Path,
) -> None:
    here = Here(BlobStore(tmp_path))
    (fewer,) = fewer_arguments(masked_specimen(), here)
    assert dict(fewer.last.kwargs) == {"training": False}
    assert [item.name for item in fewer.model.inputs] == ["x0"]
    assert all(
        one.inputs[0].shape[1] == one.inputs[1].shape[1]
        for one in smaller_shapes(masked_specimen(), here)
    )


def test_a_script_has_the_arguments_of_the_call(tmp_path: Path) -> None:
    lines = CallWriter(masked_specimen(), {}, BlobStore(tmp_path)).body(judged=False)
    assert "call = lambda x0, x1: layer(x0, mask=x1, training=False)" in lines


# On Keras itself

DRAWS = 60


@pytest.fixture(scope="module")
def tools(real_pool: Pool) -> KerasTools:
    found = Catalogue.of(ask_settled(real_pool, "numpy", ListKinds()).reply)
    return KerasTools(real_pool.blobs, Maker(asker(real_pool, "numpy"), real_pool.blobs), found)


@pytest.fixture(scope="module")
def called(tools: KerasTools) -> list[Subject]:
    """Layers alone, that have arguments."""
    parent = Subject(
        Model("any", (Input("x", (None, 2), "float32"),), (), (Ref("x"),), "keras"), {}
    )
    kinds = {name: kind for name, kind in tools.catalogue.kinds.items() if kind.arguments}
    some = replace(tools, catalogue=replace(tools.catalogue, kinds=kinds))
    rngs = [np.random.default_rng([11, n]) for n in range(DRAWS)]
    found = [free.apply(parent, None, some, rng) for rng in rngs]
    return [subject for subject in found if subject.model.layers[-1].kwargs]


@pytest.mark.frameworks
def test_the_catalogue_has_the_arguments_of_the_installed_keras(tools: KerasTools) -> None:
    known = {name: set(kind.arguments) for name, kind in tools.catalogue.kinds.items()}
    assert known["MultiHeadAttention"] >= {"query_mask", "attention_mask", "use_causal_mask"}
    assert known["LSTM"] == {"mask", "initial_state", "training"}
    assert known["BatchNormalization"] == {"mask", "training"}
    assert not known["Dense"]
    assert set.union(*known.values()) == set(ARGUMENTS)


@pytest.mark.frameworks
def test_what_is_called_with_arguments_runs_and_is_read_back_from_its_file(
    real_pool: Pool, called: list[Subject]
) -> None:
    """What fails is for the targets to show; most runs, and a file holds all but training."""
    ran = 0
    for subject in called:
        model = subject.model
        digests = [real_pool.blobs.put(array) for array in subject.inputs]
        run = ask_settled(real_pool, "numpy", RunModel(model=model, inputs=tuple(digests), batch=8))
        saved = ask_settled(real_pool, "numpy", Save(model=model))
        if model.layers[-1].kwargs.get("training"):
            assert "in training" in saved.message
            continue
        if not (run.ok and saved.ok):
            continue
        ran += 1
        loaded = ask_settled(real_pool, "numpy", Read(file=saved.reply.file)).reply.model
        before, after = (one.layers[-1].kwargs for one in (model, loaded))
        assert {k for k, v in before.items() if v} <= {k for k, v in after.items() if v}
        by_name = {item.name: digest for item, digest in zip(model.inputs, digests, strict=True)}
        inputs = [by_name[item.name] for item in loaded.inputs]
        second = RunModel(model=loaded, inputs=tuple(inputs), batch=8)
        arrays = ask_settled(real_pool, "numpy", second).reply.outputs.arrays
        np.testing.assert_array_equal(arrays[0], run.reply.outputs.arrays[0])
    assert ran > DRAWS / 6


@pytest.mark.frameworks
def test_a_call_with_arguments_is_varied_and_keeps_them(
    tools: KerasTools, called: list[Subject]
) -> None:
    varied = 0
    for number, subject in enumerate(called):
        for site in again.sites(subject, tools):
            try:
                found = again.apply(subject, site, tools, np.random.default_rng(number))
            except Impossible:
                continue
            assert found.model.layers[-1].kwargs == site.kwargs
            varied += found.model.layers[-1].object_digest != site.object_digest
    assert varied > DRAWS / 10
