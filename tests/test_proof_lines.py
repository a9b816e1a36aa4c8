"""Proofs as source: what is written down is read back as it was, whatever a model calls things."""

from __future__ import annotations

import ast
import keyword
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.core.source import filled, is_name, keywords, literal, one_line
from outvote.core.text import printable, shortened
from outvote.dialects.keras.script import _value, layer_code
from outvote.dialects.keras.script import environments as written_environments
from outvote.dialects.keras.targets import BUILT_IN
from outvote.triage.plain import PATTERNS, expression

FEW = settings(max_examples=25)
KERAS = {"module": "keras.layers"}


def read_back(source: str) -> Any:
    return eval(source, {"np": np, "float": float})


plain_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal in type and content; NaN is."""
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        pairs = zip(a, b, strict=False)
        return type(a) is type(b) and len(a) == len(b) and all(same(x, y) for x, y in pairs)
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return type(a) is type(b) and bool(a == b)


@FEW
@given(plain_data)
def test_a_literal_is_what_it_was_and_runs_nothing(value: Any) -> None:
    source = literal(value)
    assert same(read_back(source), value)
    called = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
    assert all(isinstance(n.func, ast.Name) and n.func.id == "float" for n in called)


@FEW
@given(st.dictionaries(st.text(max_size=6) | st.sampled_from(["class", "fi", "\ufb01", "a b"]),
                       st.integers(), max_size=4))  # fmt: skip
def test_arguments_arrive_under_their_names_whatever_these_are(given_ones: dict[str, int]) -> None:
    source = f"dict({', '.join(keywords({k: literal(v) for k, v in given_ones.items()}))})"
    assert eval(source) == given_ones


@pytest.mark.parametrize(
    ("text", "name"), [("a", True), ("_1", True), ("1a", False), ("a b", False), ("", False),
     ("\ufb01", False)],  # Python would read it as "fi"
)  # fmt: skip
def test_what_can_be_a_name(text: str, name: bool) -> None:
    assert is_name(text) is name
    assert not any(map(is_name, keyword.kwlist))


@FEW
@example("ends in a backslash\\")
@example('three """ quotes')
@given(st.text(max_size=30))
def test_a_line_of_a_docstring_ends_nothing(text: str) -> None:
    line = one_line(text)
    assert ast.literal_eval(f'"""{line}"""') == line
    assert "\n" not in line
    assert line.isprintable()


@FEW
@given(st.text(max_size=30))
def test_what_is_shown_commands_no_terminal_and_keeps_what_is_harmless(text: str) -> None:
    shown = printable(text)
    assert all(c.isprintable() or c in "\n\t" or c.isspace() for c in shown)
    assert printable(shown) == shown
    shown.encode("utf-8")
    if text.isprintable():
        assert shown == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("\u202eabc", "\\u202eabc"),
        ("\ud800", "\\ud800"),
        ("tab\tline\n", "tab\tline\n"),
        ("ä\u00a0ö", "ä\u00a0ö"),
    ],
)
def test_what_hides_is_spelt_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_long_message_is_one_line_that_ends_in_dots() -> None:
    assert shortened("a\n b\t c") == "a b c"
    assert shortened("x" * 300) == "x" * 300
    assert shortened("x" * 301) == "x" * 297 + "..."
    assert shortened("word " * 9, most=10) == "word wo..."


def test_a_mark_inside_a_value_stays_text(tmp_path: Path) -> None:
    template = tmp_path / "t.txt"
    template.write_text("@TITLE@ and @BODY@ @x@")
    assert filled(template, {"TITLE": "@BODY@", "BODY": "b"}) == "@BODY@ and b @x@"


# Arrays.


@FEW
@example(np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e300]))
@given(hnp.arrays(st.sampled_from(["float32", "float64", "int64", "bool", "float16"]),
                  hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)))  # fmt: skip
def test_an_expression_gives_the_same_bits(array: Array) -> None:
    source = expression(array)
    assert source is not None
    found = np.asarray(read_back(source))
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("size", [2, 200, 201, 5000])
def test_a_pattern_is_short_at_any_length_and_other_numbers_up_to_200(size: int) -> None:
    for _, pattern in PATTERNS:
        source = expression(pattern((size,)))
        assert source is not None
        assert len(source) < 60
        np.testing.assert_array_equal(read_back(source), pattern((size,)))
    odd = np.linspace(0, 1, size) ** 2 + 0.3
    assert (expression(odd) is None) == (size > 200)


# Layers and targets.


@pytest.mark.parametrize(
    ("config", "defaults", "code"),
    [
        ({"units": 3, "activation": "linear"}, {"activation": "linear"}, "Dense(units=3)"),
        ({"activation": "relu"}, {"activation": "linear"}, "Dense(activation='relu')"),
        ({"units": 3, "use_bias": None}, {}, "Dense(units=3)"),
        ({"units": 3, "use_bias": None}, {"use_bias": True}, "Dense(units=3, use_bias=None)"),
        ({"units": 3, "name": "d", "trainable": False, "seed": 1}, {}, "Dense(units=3)"),
        ({"units": 3, "kernel_initializer": "zeros"}, {}, "Dense(units=3)"),
        ({"units": 3, "dtype": "float32"}, {}, "Dense(units=3)"),
        ({"dtype": {"config": {"name": "float16"}}}, {}, "Dense(dtype='float16')"),
        ({"shape": [1, 2], "one": [5]}, {}, "Dense(shape=(1, 2), one=(5,))"),
        ({"a b": 1, "bound": math.inf}, {}, "Dense(bound=float(\"inf\"), **{'a b': 1})"),
    ],
)  # fmt: skip
def test_a_layer_is_written_as_one_would_type_it(
    config: dict[str, Any], defaults: dict[str, Any], code: str
) -> None:
    assert layer_code(Layer("d", "Dense", config, origin=KERAS), defaults) == f"keras.layers.{code}"


def test_a_layer_inside_is_typed_and_what_is_not_of_keras_is_read_from_its_form() -> None:
    inner = {"module": "keras.layers", "class_name": "Dense", "config": {"units": 2, "name": "x"}}
    assert _value(inner) == "keras.layers.Dense(units=2)"
    assert _value([inner, 1]) == "(keras.layers.Dense(units=2), 1)"
    for odd in ({**inner, "module": "mine"}, {**inner, "class_name": "a; b"}, {"class_name": "D"}):
        source = _value(odd)
        assert source == f"keras.saving.deserialize_keras_object({odd!r})"
    operation = Layer("h", "Add", {"name": "h"}, origin={"module": "keras.src.ops.numpy"})
    assert "'module': 'keras.src.ops.numpy'" in layer_code(operation, {})
    assert layer_code(operation, {}).startswith("keras.saving.deserialize_keras_object({")


def environments(*names: str, wide: bool = False, **more: Any) -> dict[str, dict[str, str]]:
    targets = {name: replace(BUILT_IN[name], **more) for name in names}
    found: dict[str, dict[str, str]] = read_back(written_environments(targets, wide))
    return found


def test_what_a_target_needs_is_in_its_environment() -> None:
    assert environments("jax", "torch") == {n: {"KERAS_BACKEND": n} for n in ("jax", "torch")}
    for name, value in environments("jax", "torch", wide=True).items():
        assert value == {"KERAS_BACKEND": name, "JAX_ENABLE_X64": "1"}  # it means nothing to torch
    (found,) = environments("tensorflow:no-onednn").values()
    assert found == {"KERAS_BACKEND": "tensorflow", "TF_ENABLE_ONEDNN_OPTS": "0"}
    (found,) = environments("jax:jit", wide=True).values()
    assert found == {"KERAS_BACKEND": "jax", "MODE": "jit", "JAX_ENABLE_X64": "1"}
    (found,) = environments(
        "torch",
        env={"A": "it's"},
        python=Path("/p"),
        path=(Path("/a"), Path("/b")),
        setup=Path("/s"),
    ).values()
    assert found == {"KERAS_BACKEND": "torch", "A": "it's", "PYTHON": "/p", "PYTHONPATH": "/a:/b",
                     "SETUP": "/s"}  # fmt: skip
    assert len(environments(*BUILT_IN)) == len(BUILT_IN)  # also where it takes several lines
