"""Edits of a model with its shapes: the graph stays valid, the parent stays as it was."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outvote.core.blobs import BlobStore
from outvote.core.cuts import ended_at, owned
from outvote.core.model import REF, Input, Layer, Model, Ref, Weight
from outvote.mutate.registry import Impossible, all_rules, mutate, rules_in
from outvote.mutate.subject import Spec, Subject
from outvote.mutate.tools import NoTools, value_class

PLACE = (None, 4)


def ref(name: str, index: int = 0) -> dict[str, Any]:
    return {REF: [name, index]}


def subject_of(*layers: Layer, outputs: tuple[Ref, ...] | None = None) -> Subject:
    """A model of layers that all give the shape they read."""
    inputs = (Input("x", PLACE, "float32"), Input("ids", (None, 4), "int32"))
    model = Model("m", inputs, layers, outputs or (Ref(layers[-1].name),), "keras")
    return Subject.of(model, {layer.name: [(PLACE, "float32")] for layer in layers})


@st.composite
def graphs(draw: Any) -> Subject:
    """Layers that read one or two earlier tensors each; some are calls of an earlier object."""
    layers: list[Layer] = []
    names = ["x"]
    for number in range(draw(st.integers(2, 6))):
        read = [draw(st.sampled_from(names)) for _ in range(draw(st.integers(1, 2)))]
        owners = [layer.name for layer in layers if layer.shares is None]
        shares = draw(st.none() | st.sampled_from(owners)) if owners else None
        owner = next((layer for layer in layers if layer.name == shares), None)
        kind = owner.kind if owner else f"Kind{number}"
        args = [ref(name) for name in read] if len(read) == 1 else [[ref(n) for n in read]]
        layers.append(Layer(f"l{number}", kind, {"of": kind}, args, shares=shares))
        names.append(f"l{number}")
    ends = draw(st.lists(st.sampled_from(names[1:]), min_size=1, max_size=2, unique=True))
    return subject_of(*layers, outputs=tuple(map(Ref, ends)))


def value_of(model: Model) -> dict[str, Any]:
    """What every tensor is made of, as a tree: the meaning of a graph without its names."""
    seen: dict[str, Any] = {item.name: item.name for item in model.inputs}
    for layer in model.layers:
        seen[layer.name] = (layer.kind, *(seen[r.producer] for r in layer.refs()))
    return seen


def owners_are_there(model: Model) -> bool:
    """Whether every shared call names an earlier call that owns the object."""
    owners: set[str] = set()
    for layer in model.layers:
        if layer.shares is None:
            owners.add(layer.name)
        elif layer.shares not in owners:
            return False
    return True


FEW = settings(max_examples=25)


@FEW
@given(graphs(), st.data())
def test_a_layer_taken_out_is_replaced_by_what_it_read(subject: Subject, data: Any) -> None:
    gone = data.draw(st.sampled_from(subject.model.layers))
    before = copy.deepcopy(subject)
    mutant = subject.without(gone)
    assert subject == before
    names = [layer.name for layer in mutant.model.layers]
    assert names == [layer.name for layer in subject.model.layers if layer is not gone]
    assert set(mutant.specs) == {"x", "ids", *names}
    assert owners_are_there(mutant.model)
    source = next(iter(gone.refs()))
    for layer in mutant.model.layers:
        old = subject.model.layer(layer.name)
        expected = [source if r.producer == gone.name else r for r in old.refs()]
        assert list(layer.refs()) == expected
    expected = [source if r.producer == gone.name else r for r in subject.model.outputs]
    assert list(mutant.model.outputs) == expected


@FEW
@given(graphs(), st.data())
def test_a_chain_stands_between_a_tensor_and_all_who_read_it(subject: Subject, data: Any) -> None:
    after = Ref(data.draw(st.sampled_from(["x", *(layer.name for layer in subject.model.layers)])))
    chain = [
        Layer("n1", "New", {}, [ref(after.producer)]),
        Layer("n2", "Newer", {}, [ref("n1")]),
    ]
    specs = {layer.name: (Spec(PLACE, "float32"),) for layer in chain}
    before = value_of(subject.model)
    mutant = subject.inserted(after, chain, specs)
    assert value_of(subject.model) == before  # the parent is as it was
    found = value_of(mutant.model)
    assert found["n2"] == ("Newer", ("New", found[after.producer]))
    for layer in subject.model.layers:
        readers = [r.producer for r in mutant.model.layer(layer.name).refs()]
        assert after.producer not in readers
    assert after not in mutant.model.outputs
    assert (Ref("n2") in mutant.model.outputs) == (after in subject.model.outputs)
    # Taken out again, one by one, it is the parent.
    back = mutant.without(mutant.model.layer("n2")).without(mutant.model.layer("n1"))
    assert back.model == subject.model
    assert back.specs == subject.specs


@FEW
@given(graphs(), st.data())
def test_an_object_changes_in_all_its_calls_and_nowhere_else(subject: Subject, data: Any) -> None:
    layer = data.draw(st.sampled_from(subject.model.layers))
    mutant = subject.with_object(layer, config={"changed": True})
    calls = {item.name for item in subject.calls_of(layer)}
    root = layer.shares or layer.name
    assert calls == {x.name for x in subject.model.layers if root in (x.name, x.shares)}
    for old, new in zip(subject.model.layers, mutant.model.layers, strict=True):
        assert new.config == ({"changed": True} if old.name in calls else old.config)
        assert (old.name, old.args, old.shares) == (new.name, new.args, new.shares)


@FEW
@given(graphs(), st.data())
def test_a_model_that_ends_earlier_holds_what_its_end_needs(subject: Subject, data: Any) -> None:
    model = subject.model
    end = Ref(data.draw(st.sampled_from([layer.name for layer in model.layers])))
    cut = ended_at(model, end)
    assert cut.outputs == (end,)
    assert value_of(cut)[end.producer] == value_of(model)[end.producer]
    assert owners_are_there(cut)
    read = {name for layer in cut.layers for name in layer.inputs}
    assert all(layer.name in read or layer.name == end.producer for layer in cut.layers)


@FEW
@given(graphs(), st.data())
def test_of_a_shared_object_the_first_call_left_owns_it(subject: Subject, data: Any) -> None:
    layers = subject.model.layers
    left = [layer for layer in layers if data.draw(st.booleans())]
    found = owned(left)
    assert [layer.name for layer in found] == [layer.name for layer in left]
    groups: dict[str, list[Layer]] = {}
    for old, new in zip(left, found, strict=True):
        groups.setdefault(old.shares or old.name, []).append(new)
    for first, *others in groups.values():
        assert first.shares is None
        assert all(layer.shares == first.name for layer in others)


# What a subject knows.


def test_shapes_without_the_batch_wherever_it_lies() -> None:
    assert Spec((None, 3, 4), "float32").place == (3, 4)
    assert Spec((3, None, 4), "float16", 1).place == (3, 4)
    assert Spec((3, 4), "int32", None).place == (3, 4)
    sizes = [Spec(shape, "float32").size for shape in ((None, 3, 4), (None, None), (None,))]
    assert sizes == [12, None, 1]
    assert [Spec((1,), d).is_float for d in ("bfloat16", "int8", "bool")] == [True, False, False]


def test_what_is_not_known_of_a_layer_is_not_used() -> None:
    one, two = Layer("one", "Odd", {}, [ref("x")]), Layer("two", "ReLU", {}, [ref("one")])
    model = Model("m", (Input("x", PLACE, "float32"),), (one, two), (Ref("two"),), "keras")
    subject = Subject.of(model, {"two": [(PLACE, "float32")]})
    assert [subject.is_known(layer) for layer in (one, two)] == [False, False]
    assert not subject.keeps_shape(two)
    assert subject.float_tensors() == [Ref("two")]


def test_which_layers_keep_their_shape() -> None:
    layers = (
        Layer("same", "ReLU", {}, [ref("x")]),
        Layer("cast", "Cast", {}, [ref("ids")]),
        Layer("both", "Add", {}, [[ref("x"), ref("same")]]),
        Layer("other", "Dense", {}, [ref("x")], {"mask": ref("ids")}),
    )
    subject = subject_of(*layers)
    assert [subject.keeps_shape(layer) for layer in layers] == [True, False, True, False]
    assert [subject.has_one_input(layer) for layer in layers] == [True, True, False, False]
    assert [layer.name for layer in subject.readers("x")] == ["same", "both", "other"]
    assert subject.unused("same") == "same_1"
    again = subject_of(*layers, Layer("same_1", "ReLU", {}, [ref("x")]))
    assert again.unused("same") == "same_2"


# Rules that need no dialect's knowledge, and rules that find nothing.


def test_a_rule_that_has_no_place_gives_no_mutant(tmp_path: Any) -> None:
    tools = NoTools(BlobStore(tmp_path))
    alone = subject_of(Layer("one", "ReLU", {}, [ref("x")]))
    rules = all_rules("keras")
    assert rules["LR"].sites(alone, tools) == []  # the last layer stays
    assert mutate(rules["LR"], alone, tools, [0]) is None
    assert mutate(rules["LS"], alone, tools, [0]) is None
    mutant = mutate(rules["LC"], alone, tools, [0])
    assert mutant is not None
    assert [layer.name for layer in mutant.model.layers] == ["one", "one_1"]
    assert mutant.model.layers[1].inputs == ("one",)
    assert mutant.model.outputs == (Ref("one_1"),)


def test_what_does_not_work_out_or_changes_nothing_is_no_mutant(tmp_path: Any) -> None:
    tools = NoTools(BlobStore(tmp_path))
    subject = subject_of(Layer("one", "ReLU", {}, [ref("x")]))

    class Odd:
        NAME = GROUP = TITLE = "odd"

        def sites(self, subject: Subject, tools: Any) -> list[int]:
            return [1]

        def apply(self, subject: Subject, site: int, tools: Any, rng: Any) -> Subject:
            if rng.random() < 2:
                raise Impossible("nothing fits")
            return subject

    class Same(Odd):
        def apply(self, subject: Subject, site: int, tools: Any, rng: Any) -> Subject:
            return subject

    class Wrong(Odd):
        def apply(self, subject: Subject, site: int, tools: Any, rng: Any) -> Subject:
            raise ValueError("an error of the rule")

    assert mutate(Odd(), subject, tools, [0]) is None
    assert mutate(Same(), subject, tools, [0]) is None
    with pytest.raises(ValueError, match="an error of the rule"):
        mutate(Wrong(), subject, tools, [0])


def test_a_dialect_without_tools_draws_nothing(tmp_path: Any) -> None:
    from outvote.core.errors import UsageError
    from outvote.mutate import rules

    tools = NoTools(BlobStore(tmp_path))
    layer = Layer("one", "ReLU", {"max_value": 6.0}, [ref("x")])
    assert (tools.parameters(layer), tools.others(layer, "max_value", 6.0)) == ({}, [])
    assert tools.illegal(layer) == []
    assert tools.variant(layer, {}, [], np.random.default_rng(0)) is None
    with pytest.raises(UsageError, match="there are no illegal values to try"):
        tools.attempt(layer, {}, [])
    assert {"LC", "LR", "LS"} <= set(rules_in(rules))
    assert value_class({"class_name": "Dense"}) == "object"


def test_layers_are_exchanged_with_their_weights_and_read_what_the_other_read(
    tmp_path: Any,
) -> None:
    tools = NoTools(BlobStore(tmp_path))
    weight = Weight("kernel", "a" * 64, (4, 4))
    layers = (
        Layer("a", "Dense", {"units": 4, "name": "a"}, [ref("x")], weights=(weight,)),
        Layer("b", "ReLU", {"name": "b"}, [ref("a")]),
        Layer("c", "ReLU", {"name": "c"}, [ref("b")]),
    )
    subject = subject_of(*layers)
    rule = all_rules("keras")["LS"]
    pairs = {(one.name, two.name) for one, two in rule.sites(subject, tools)}
    assert pairs == {("a", "b"), ("a", "c")}  # two layers that are alike change nothing
    mutant = rule.apply(subject, (layers[0], layers[2]), tools, np.random.default_rng(0))
    assert [layer.kind for layer in mutant.model.layers] == ["ReLU", "ReLU", "Dense"]
    assert [layer.inputs for layer in mutant.model.layers] == [("x",), ("a",), ("b",)]
    assert mutant.model.layers[2].weights == (weight,)
    assert [layer.config["name"] for layer in mutant.model.layers] == ["a", "b", "c"]
    assert subject.model.layers == layers
