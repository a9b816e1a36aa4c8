"""Typed values as plain data: what was written is read again, and nothing else is believed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outvote.core import codec
from outvote.core.arrays import Array, as_numbers, byte_size, dtype_name, from_bytes, to_bytes
from outvote.core.errors import ProtocolError
from outvote.core.model import REF, Input, Layer, Model, Ref, Weight, find_refs, with_refs
from outvote.core.outputs import Outputs
from outvote.core.wire import framed

FEW = settings(max_examples=25)


@dataclass(frozen=True)
class Inner:
    shape: tuple[int, ...]
    array: Array | None = None


@dataclass(frozen=True)
class Message:
    """Every kind of field that a request or a reply may have."""

    name: str
    flag: bool
    count: int
    size: float
    pair: tuple[str, int]
    rows: tuple[Inner, ...] = ()
    by_name: Mapping[str, list[float]] = field(default_factory=dict)
    maybe: int | None = None
    anything: Any = None


def refusal(read: Callable[[Any], object], data: Any) -> str | None:
    """Why it is not believed; None: it is. Any other error is one of ours, and stays one."""
    try:
        read(data)
    except ProtocolError as error:
        return str(error)
    return None


PLAIN = {"name": "a", "flag": True, "count": 1, "size": 0.5, "pair": ["b", 2]}
numbers = st.floats(allow_nan=False)
inners = st.builds(
    Inner,
    st.lists(st.integers(), max_size=3).map(tuple),
    st.none() | st.lists(st.integers(-9, 9), max_size=4).map(lambda v: np.array(v, np.int64)),
)
messages = st.builds(
    Message,
    st.text(max_size=4),
    st.booleans(),
    st.integers(),
    numbers,
    st.tuples(st.text(max_size=3), st.integers()),
    st.lists(inners, max_size=3).map(tuple),
    st.dictionaries(st.text(max_size=3), st.lists(numbers, max_size=3), max_size=3),
    st.none() | st.integers(),
    st.none() | st.booleans() | st.text(max_size=3),
)


@FEW
@given(messages)
def test_what_was_written_is_read_again_through_json(message: Message) -> None:
    data, arrays = codec.written(message)
    back = codec.read(Message, json.loads(json.dumps(data)), arrays)
    for name in ("name", "flag", "count", "size", "pair", "maybe", "anything"):
        assert getattr(back, name) == getattr(message, name), name
    assert dict(back.by_name) == dict(message.by_name)
    assert len(back.rows) == len(message.rows)
    for one, other in zip(back.rows, message.rows, strict=True):
        assert one.shape == other.shape
        assert (one.array is None) == (other.array is None)
        np.testing.assert_array_equal(one.array, other.array)


@FEW
@given(messages, st.sampled_from([None, [], {}, "x", 7, 7.5, True, [1, 2, 3], {"shape": "no"}]))
def test_a_field_of_another_type_is_a_protocol_error_and_nothing_else(
    message: Message, odd: Any
) -> None:
    data, arrays = codec.written(message)
    for name in data:
        told = refusal(lambda spoilt: codec.read(Message, spoilt, arrays), {**data, name: odd})
        assert told is None or told.startswith(f"Message.{name}")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"flag": 1}, "Message.flag is true or false; received '1'"),
        ({"count": True}, "Message.count is a whole number; received 'True'"),
        ({"count": 1.0}, "Message.count is a whole number; received '1.0'"),
        ({"size": True}, "Message.size is a number; received 'True'"),
        ({"size": 10**400}, f"Message.size is a number; received '{10**79}'"),
        ({"pair": ["b"]}, r"Message.pair is a row of 2; received \"\['b'\]\""),
        ({"pair": "bc"}, "Message.pair is a row of 2; received 'bc'"),
        ({"rows": "ab"}, "Message.rows is a list; received 'ab'"),
        ({"rows": [{"shape": [1.5]}]}, "Message.rows.shape is a whole number; received '1.5'"),
        ({"rows": [{"shape": [], "array": 0}]}, "rows.array is the number of one of 0 arrays"),
        ({"rows": [{"shape": [], "array": -1}]}, "rows.array is the number of one of 0 arrays"),
        ({"rows": [{}]}, "Message.rows lacks 'shape'"),
        ({"by_name": []}, "Message.by_name is a table"),
        ({"by_name": {"k": ["v"]}}, "Message.by_name.k is a number; received 'v'"),
        ({"maybe": "x"}, "Message.maybe is a whole number"),
        ({"zoo": 1, "abc": 2}, "Message has no field 'abc'"),
        ({"name": "x" * 999}, None),
        ({"name": ["x" * 999]}, r"received \"\['x{78}\""),  # and no more of it
    ],
)
def test_the_place_and_the_value_are_named(change: dict[str, Any], says: str | None) -> None:
    if says is None:
        assert codec.read(Message, {**PLAIN, **change}, []).name == change["name"]
        return
    with pytest.raises(ProtocolError, match=says):
        codec.read(Message, {**PLAIN, **change}, [])


def test_a_type_that_cannot_be_written_is_our_own_error() -> None:
    with pytest.raises(TypeError, match="no coder for"):
        codec.coder(set[int])


def test_a_whole_number_is_read_as_a_float_where_one_is_meant() -> None:
    found = codec.read(Message, {**PLAIN, "size": 3}, []).size
    assert (found, type(found)) == (3.0, float)


# Arrays and messages.


def test_texts_travel_and_are_compared_by_their_content() -> None:
    texts = np.array([["ä", "bcd"], ["", "bcd"]])
    assert dtype_name(texts) == "<U3"
    back = from_bytes("<U3", (2, 2), bytes(to_bytes(texts)))
    np.testing.assert_array_equal(back, texts)
    codes = as_numbers(texts)
    assert codes.shape == (2, 2)
    assert codes[0, 1] == codes[1, 1]
    assert len(set(codes.reshape(-1).tolist())) == 3
    floats = np.ones(2)
    assert as_numbers(floats) is floats
    assert Outputs((texts,), ("string",)).arrays[0].dtype == np.int64


@pytest.mark.parametrize("name", ["<U0", "<U1234567", ">U3", "object", "float128", None, 3, "U3"])
def test_a_type_that_nobody_sends_is_refused(name: Any) -> None:
    with pytest.raises(ProtocolError, match=r"unknown array dtype .*; expected one of bool, int8"):
        byte_size(name, [1])


@pytest.mark.parametrize("shape", [[True], [1.0], "12", [-1], None, 3, [None]])
def test_a_shape_that_is_none_is_refused(shape: Any) -> None:
    with pytest.raises(ProtocolError, match="an array shape is a list of sizes; received"):
        byte_size("float32", shape)


@pytest.mark.parametrize("value", [1j, object(), {1, 2}, b"bytes", np.array([1j])])
def test_what_is_no_plain_data_is_not_sent(value: Any) -> None:
    with pytest.raises(ProtocolError, match=r"a message cannot be sent: .* is no plain data"):
        framed({"op": value})


@pytest.mark.parametrize(
    ("dtypes", "batch"), [((), ()), (("float32",) * 2, ()), (("float32",), (0, 0))]
)
def test_outputs_say_the_type_and_the_axis_of_each(
    dtypes: tuple[str, ...], batch: tuple[int, ...]
) -> None:
    """A worker that says less, or more, than it sends is not compared by what is missing."""
    told = f"1 outputs come with {len(dtypes)} types and {len(batch)} batch axes"
    with pytest.raises(ProtocolError, match=told):
        Outputs((np.ones(3),), dtypes, batch)
    with pytest.raises(ProtocolError, match=told):
        codec.read(Outputs, {"arrays": [0], "dtypes": dtypes, "batch": batch}, [np.ones(3)])


# Models from elsewhere.


def _model() -> Model:
    def ref(name: str, index: int = 0) -> Any:
        return {REF: [name, index]}

    weights = (Weight("kernel", "a" * 64, (4, 2)),)
    return Model(
        "m",
        (Input("x", (None, 4), "float32"), Input("table", (4,), "float32", None)),
        (
            Layer("d", "Dense", {"units": 2, "name": "d"}, [ref("x")], weights=weights),
            Layer("s", "Split", {}, [[ref("d"), ref("table")]], {"k": {"deep": [ref("x")]}}),
            Layer("d2", "Dense", {}, [ref("s", 1)], shares="d", batch=(1,)),
        ),
        (Ref("d2"), Ref("s", 1), Ref("x")),
        "keras",
    )


def test_a_model_through_json_is_the_same_model() -> None:
    model = _model()
    back = Model.from_json(json.loads(json.dumps(model.to_json())))
    assert back == Model.from_json(back.to_json())
    assert back.digests() == model.digests()
    assert back.inputs == model.inputs
    assert back.outputs == model.outputs
    assert [list(x.refs()) for x in back.layers] == [list(x.refs()) for x in model.layers]
    assert [x.batch for x in back.layers] == [(), (), (1,)]
    axes = [back.batch_axis(Ref(name)) for name in ("x", "table", "d", "d2")]
    assert axes == [0, None, 0, 1]


ODD = st.sampled_from([None, [], {}, 7, "odd", [None], {REF: 3}, [[REF]], {"name": 1}])


def _places(data: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything inside plain data."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    found = []
    for key, value in items:
        found.append((*here, key))
        if isinstance(value, dict | list | tuple):
            found += _places(value, (*here, key))
    return found


@settings(max_examples=60)
@given(st.data())
def test_a_spoilt_model_is_a_protocol_error_or_a_model(data: Any) -> None:
    spoilt = json.loads(json.dumps(_model().to_json()))
    *way, last = data.draw(st.sampled_from(_places(spoilt)))
    inner = spoilt
    for key in way:
        inner = inner[key]
    if isinstance(inner, dict) and data.draw(st.booleans()):
        del inner[last]
    else:
        inner[last] = data.draw(ODD)
    told = refusal(lambda data: Model.from_json(data).identity, spoilt)
    assert told is None or len(told) > 10


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("inputs", 0, "shape"), ["many"], "input 'x' has shape"),
        (("inputs", 0, "shape"), [-1], "input 'x' has shape"),
        (("inputs", 0, "batch"), "first", "batch axis first"),
        (("layers", 0, "config"), None, "layer 'd' has a field of another type"),
        (("layers", 0, "kwargs"), [], "layer 'd' has a field of another type"),
        (("layers", 0, "kind"), 7, "layer 'd' has a field of another type"),
        (("layers", 0, "shares"), 7, "layer 'd' has a field of another type"),
        (("layers", 0, "batch"), [True], "layer 'd' has a field of another type"),
        (("layers", 0, "surprise"), 1, "unexpected keyword argument 'surprise'"),
        (("layers", 1, "name"), "d", "layer 'd' is named twice"),
        (("layers", 1, "args"), [{REF: ["later", 0]}], "reads 'later', which comes later or never"),
        (("layers", 1, "args"), [{REF: ["x"]}], "not a model"),
        (("outputs",), [], "model 'm' has no output that its layers compute"),
    ],
)
def test_what_is_wrong_with_a_model_is_told(place: tuple[Any, ...], value: Any, says: str) -> None:
    spoilt = json.loads(json.dumps(_model().to_json()))
    *way, last = place
    inner = spoilt
    for key in way:
        inner = inner[key]
    inner[last] = value
    told = refusal(Model.from_json, spoilt)
    assert told is not None
    assert says in told


@pytest.mark.parametrize("data", [None, [], "model", {}, {"name": "m"}, 5])
def test_what_is_no_model_at_all(data: Any) -> None:
    with pytest.raises(ProtocolError, match="not a model"):
        Model.from_json(data)


def test_references_are_found_and_changed_at_any_depth_in_call_order() -> None:
    args = [{REF: ["a", 0]}, [3, {"k": ({REF: ["b", 1]}, None)}], "text", {REF: ["a", 0]}]
    assert list(find_refs(args)) == [Ref("a"), Ref("b", 1), Ref("a")]
    seen: list[Ref] = []

    def renamed(ref: Ref) -> Ref:
        seen.append(ref)
        return Ref(ref.producer.upper(), len(seen))

    changed = with_refs(args, renamed)
    assert seen == list(find_refs(args))
    assert list(find_refs(changed)) == [Ref("A", 1), Ref("B", 2), Ref("A", 3)]
    assert with_refs(args, lambda ref: ref) == [args[0], [3, {"k": [{REF: ["b", 1]}, None]}],
                                                "text", args[3]]  # fmt: skip


def test_weights_of_shared_layers_count_once() -> None:
    model = _model()
    assert model.weight_count == 8
    shared = Layer("d3", "Dense", {}, [{REF: ["x", 0]}], weights=model.layers[0].weights)
    assert Model("m", model.inputs, (*model.layers, shared), (Ref("d3"),), "k").weight_count == 16


def test_a_model_is_the_same_by_whatever_names_and_another_in_another_order() -> None:
    model = _model()
    text = json.dumps(model.to_json()).replace('"d"', '"other"').replace('"x"', '"fed"')
    assert Model.from_json(json.loads(text)).identity == model.identity
    swapped = Model("m", model.inputs[::-1], model.layers, model.outputs, "keras")
    assert swapped.identity != model.identity
