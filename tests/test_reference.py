"""The float64 reference against real libraries: every kind it covers, many drawn parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from outvote.bench.steps import alone
from outvote.core.arrays import Array
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.core.protocol import ListKinds
from outvote.core.states import State
from outvote.dialects.keras.mutate.catalogue import Catalogue
from outvote.dialects.keras.mutate.maker import Maker
from outvote.dialects.keras.mutate.values import NESTED
from outvote.dialects.keras.reference import REFUSED, covered, strict_reference
from outvote.mutate.subject import Spec
from outvote.run.pool import Pool, asker

TARGETS = ("tensorflow", "torch")
DRAWS = 4
# One instance of each rank; Keras needs even channels for some activations and groups.
PLACES: Mapping[int, Sequence[tuple[int, ...]]] = {
    1: [(6,), (1,)],
    2: [(5, 4), (4, 6)],
    3: [(6, 5, 4), (7, 6, 2)],
    4: [(4, 5, 4, 3), (3, 4, 4, 2)],
}
# The class has another name than the one under which Keras stores the layer.
STORED_AS = {"GroupQueryAttention": "GroupedQueryAttention"}
# The type of a Discretization is that of its output.
OWN_DTYPE = ("Discretization",)


def tolerance(target: str, kind: str, dtype: str) -> float:
    """Relative to 1 + |expected|. Keras on PyTorch narrows float64 to float32 in most operations,
    TensorFlow in resizing and in slopes and constants of activations."""
    if dtype == "float32":
        return 1e-4
    narrows = target == "torch" or kind in ("Resizing", "UpSampling2D", "LeakyReLU")
    return 5e-6 if narrows else 3e-8


# Where a library differs from the documentation today (target, kind): (when, why).
KNOWN: Mapping[tuple[str, str], tuple[Callable[[Mapping[str, Any]], bool], str]] = {
    **{
        ("torch", f"AveragePooling{n}D"): (
            lambda config: config["padding"] == "same",
            "counts padding; fixed after Keras 3.15.1 (keras PR 23233)",
        )
        for n in (1, 2, 3)
    },
    ("tensorflow", "SeparableConv1D"): (
        lambda config: config["data_format"] == "channels_first",
        "adds the bias along the wrong axis when the output is as long as there are filters",
    ),
}
# Wrong on every backend of Keras 3.15.1: the threshold is made of the sum of all partial sums of
# the support, not of the last one, so that the answers do not add up to 1 (Martins and Astudillo,
# 2016, Algorithm 1). See test_sparsemax_is_a_distribution.
WRONG_EVERYWHERE = ("sparsemax",)


@dataclass(frozen=True)
class Bench:
    """A pool, and what draws and makes layers with it."""

    pool: Pool
    maker: Maker
    catalogue: Catalogue

    def layer(
        self,
        kind: str,
        parameters: Mapping[str, Any],
        specs: Sequence[Spec],
        joined: bool = False,
        dtype: str = "float32",
        seed: int = 0,
    ) -> Layer | None:
        wanted = {name: typed(value, dtype) for name, value in parameters.items()}
        if kind not in OWN_DTYPE:
            wanted["dtype"] = dtype
        made = self.maker.make(kind, wanted, specs, joined)
        if made is None:
            return None
        reads = [Ref(f"x{i}") for i in range(len(specs))]
        return self.maker.layer(made, "it", reads, np.random.default_rng(seed))

    def expected(self, layer: Layer, given: Sequence[State]) -> list[Array] | None:
        """The reference; where it can compute nothing, no target may."""
        weights = [np.array(self.pool.blobs.get(weight.digest)) for weight in layer.weights]
        try:
            return strict_reference(layer, weights, given)
        except REFUSED:
            if self.run(layer, given):
                raise
            return None

    def run(self, layer: Layer, given: Sequence[State]) -> dict[str, tuple[Array, ...]]:
        """What each target that can computes."""
        inputs = tuple(
            Input(f"x{i}", (None, *state.array.shape[1:]), state.dtype)
            for i, state in enumerate(given)
        )
        step = alone(
            self.pool, TARGETS, Model("one", inputs, (layer,), (Ref("it"),), "keras"), given
        )
        return {name: outputs.arrays for name, outputs in step.isolated.items()}

    def compared(self, layer: Layer, given: Sequence[State], dtype: str) -> list[str]:
        """The targets that agree with the reference; any other than a known one must."""
        expected = self.expected(layer, given)
        if expected is None or layer.config.get("activation") in WRONG_EVERYWHERE:
            return []
        agree = []
        for name, outputs in self.run(layer, given).items():
            when, _ = KNOWN.get((name, layer.kind), (None, ""))
            if when is not None and when(layer.config):
                continue
            about = f"{name}: {layer.kind} {dict(layer.config)} on {given[0].array.shape}"
            assert [a.shape for a in outputs] == [a.shape for a in expected], about
            for output, right in zip(outputs, expected, strict=True):
                distance = np.abs(output.astype(np.float64) - right) / (1 + np.abs(right))
                worst = float(distance.max(initial=0))
                assert worst <= tolerance(name, layer.kind, dtype), f"{worst:.2g} off, {about}"
            agree.append(name)
        return agree


def typed(value: Any, dtype: str) -> Any:
    """Parameters in which layers inside have the same type as the one around them."""
    if isinstance(value, dict) and NESTED in value:
        kind, parameters = value[NESTED]
        inner = {name: typed(item, dtype) for name, item in parameters.items()}
        return {NESTED: [kind, {**inner, "dtype": dtype}]}
    return [typed(item, dtype) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def bench(real_pool: Pool) -> Bench:
    ask = asker(real_pool, "torch")
    catalogue = Catalogue.of(ask(ListKinds()).reply)
    return Bench(real_pool, Maker(ask, real_pool.blobs), catalogue)


def drawn(bench: Bench, name: str, seed: int) -> tuple[Layer, list[State], str] | None:
    """A layer of that kind with drawn parameters, its input and its type."""
    kind = bench.catalogue.kinds[STORED_AS.get(name, name)]
    rng = np.random.default_rng([seed, sum(name.encode())])
    dtype = "float64" if seed % 2 else "float32"
    rank = kind.ranks[seed % len(kind.ranks)]
    place = PLACES[rank][int(rng.integers(2))]
    parameters = kind.draw(place, rng, bench.catalogue.activations, keep=False)
    given_type = "int32" if kind.whole_numbers else dtype
    specs = [Spec((None, *place), given_type)] * kind.arity
    layer = bench.layer(kind.name, parameters, specs, kind.joined, dtype, seed)
    if layer is None:
        return None
    shape = (2, *place)
    arrays = [
        rng.integers(0, 8, shape) if kind.whole_numbers else rng.normal(size=shape)
        for _ in range(kind.arity)
    ]
    return layer, [State(array.astype(given_type)) for array in arrays], dtype


@pytest.mark.frameworks
@pytest.mark.parametrize("kind", sorted(covered()))
def test_every_kind_agrees_with_two_libraries_on_drawn_parameters(bench: Bench, kind: str) -> None:
    agreed: list[str] = []
    # Some draws are refused by Keras, not covered, or not supported by a library: then go on.
    for seed in range(4 * DRAWS):
        case = drawn(bench, kind, seed)
        if case is not None:
            agreed += bench.compared(*case)
        if seed + 1 >= DRAWS and all(agreed.count(name) >= 2 for name in TARGETS):
            break
    assert all(agreed.count(name) >= 2 for name in TARGETS), f"compared only {agreed}"


@pytest.mark.frameworks
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_activation_agrees_with_two_libraries(bench: Bench, dtype: str) -> None:
    x = np.concatenate([np.linspace(-8, 8, 35), [0.25, 0.0, 40.0, -40.0, 1.1]])
    given = [State(x.reshape(4, 10).astype(dtype))]
    assert len(bench.catalogue.activations) > 25
    plain = bench.layer(
        "Activation", {"activation": "relu"}, [Spec((None, 10), dtype)], dtype=dtype
    )
    assert plain is not None
    for name in set(bench.catalogue.activations) - set(WRONG_EVERYWHERE):
        layer = replace(plain, config={**plain.config, "activation": name})
        assert set(bench.compared(layer, given, dtype)) == set(TARGETS), name


@dataclass(frozen=True)
class Special:
    """A call that the catalogue does not draw: states, masks, several outputs, other arguments."""

    kind: str
    parameters: Mapping[str, Any]
    shapes: Sequence[tuple[int, ...]]
    kwargs: Mapping[str, Any] | None = None  # numbers in a "$x" stand for tensors
    masked: bool = False
    joined: bool = False
    called_with: int | None = None  # how many tensors are positional; all by default


def x_(number: int) -> dict[str, Any]:
    return {REF: [f"x{number}", 0]}


SEQUENCE = (5, 4)
SPECIAL = {
    **{
        f"{kind} with a mask, states and sequences": Special(
            kind,
            {"units": 3, "return_sequences": True, "return_state": True},
            [SEQUENCE],
            masked=True,
        )
        for kind in ("LSTM", "GRU", "SimpleRNN")
    },
    "LSTM backwards with a mask": Special(
        "LSTM", {"units": 3, "go_backwards": True}, [SEQUENCE], masked=True
    ),
    "LSTM from a state": Special(
        "LSTM",
        {"units": 3, "return_state": True},
        [SEQUENCE, (3,), (3,)],
        {"initial_state": [x_(1), x_(2)]},
        called_with=1,
    ),
    "GRU of the older form": Special(
        "GRU", {"units": 3, "reset_after": False, "return_sequences": True}, [SEQUENCE], masked=True
    ),
    "RNN of stacked cells with zeros for masked steps": Special(
        "RNN",
        {
            "cell": [{NESTED: ["LSTMCell", {"units": 2}]}, {NESTED: ["GRUCell", {"units": 3}]}],
            "return_sequences": True,
            "return_state": True,
            "zero_output_for_mask": True,
        },
        [SEQUENCE],
        masked=True,
    ),
    **{
        f"Bidirectional, merged by {mode}, with a mask and states": Special(
            "Bidirectional",
            {
                "layer": {
                    NESTED: ["GRU", {"units": 3, "return_sequences": True, "return_state": True}]
                },
                "merge_mode": mode,
            },
            [SEQUENCE],
            masked=True,
        )
        for mode in ("concat", "sum", "ave", None)
    },
    "the mean of what a mask leaves": Special(
        "GlobalAveragePooling1D", {"keepdims": True}, [SEQUENCE], masked=True
    ),
    **{
        f"{kind} with a causal mask and scores": Special(
            kind,
            {},
            [SEQUENCE, SEQUENCE],
            {"use_causal_mask": True, "return_attention_scores": True},
            joined=True,
        )
        for kind in ("Attention", "AdditiveAttention")
    },
    "Attention with masks and a key": Special(
        "Attention", {"use_scale": True}, [SEQUENCE] * 3, masked=True, joined=True
    ),
    "MultiHeadAttention, causal": Special(
        "MultiHeadAttention",
        {"num_heads": 2, "key_dim": 3},
        [SEQUENCE, SEQUENCE],
        {"use_causal_mask": True},
    ),
    "MultiHeadAttention with a key and scores": Special(
        "MultiHeadAttention",
        {"num_heads": 2, "key_dim": 3, "value_dim": 2, "dropout": 0.3},
        [SEQUENCE, (6, 4), (6, 4)],
        {"return_attention_scores": True},
    ),
    "GroupQueryAttention, causal, in a window": Special(
        "GroupedQueryAttention",
        {"head_dim": 2, "num_query_heads": 4, "num_key_value_heads": 2, "sliding_window": 2},
        [SEQUENCE, SEQUENCE],
        {"use_causal_mask": True},
    ),
    "Softmax over two axes": Special("Softmax", {"axis": [1, 2]}, [SEQUENCE]),
    "Softmax with a mask": Special("Softmax", {}, [(5,)], masked=True),
    **{
        f"Conv{rank}DTranspose, {padding}, output padding {extra}": Special(
            f"Conv{rank}DTranspose",
            {
                "filters": 2,
                "kernel_size": 3,
                "strides": 2,
                "padding": padding,
                "output_padding": extra,
            },
            [(4, 5, 4, 3)[-rank - 1 :]],
        )
        for rank in (1, 2, 3)
        for padding in ("valid", "same")
        for extra in (0, 1)
    },
    "ReLU with everything": Special(
        "ReLU", {"negative_slope": 0.1, "max_value": 0.8, "threshold": 0.3}, [(40,)]
    ),
    "LayerNormalization with rms_scaling": Special(
        "LayerNormalization", {"rms_scaling": True}, [SEQUENCE]
    ),
    "LayerNormalization over two axes": Special("LayerNormalization", {"axis": [1, 2]}, [SEQUENCE]),
    "Normalization per channel": Special(
        "Normalization",
        {"axis": -1, "mean": [0.1, 0.2, 0.3, 0.4], "variance": [1.0, 2.0, 0.5, 4.0]},
        [SEQUENCE],
    ),
    "Normalization by what was learned": Special("Normalization", {"axis": -1}, [SEQUENCE]),
    "EinsumDense with an ellipsis": Special(
        "EinsumDense",
        {"equation": "...x,xy->...y", "output_shape": 3, "bias_axes": "y"},
        [SEQUENCE],
    ),
    "Dot over different axes": Special("Dot", {"axes": [2, 1]}, [SEQUENCE, (4, 3)], joined=True),
    "Add of three, one row wide": Special("Add", {}, [SEQUENCE, (1, 4), SEQUENCE], joined=True),
    "UpSampling2D, bilinear": Special(
        "UpSampling2D", {"size": [2, 3], "interpolation": "bilinear"}, [(3, 4, 2)]
    ),
    "Resizing, larger and smaller": Special("Resizing", {"height": 9, "width": 2}, [(4, 5, 2)]),
}


@pytest.mark.frameworks
@pytest.mark.parametrize("name", list(SPECIAL))
def test_calls_with_masks_states_and_more_agree_with_two_libraries(bench: Bench, name: str) -> None:
    case = SPECIAL[name]
    rng = np.random.default_rng(len(name))
    positional = len(case.shapes) if case.called_with is None else case.called_with
    specs = [Spec((None, *shape), "float32") for shape in case.shapes]
    layer = bench.layer(case.kind, case.parameters, specs[:positional], case.joined)
    assert layer is not None, "Keras refuses it"
    layer = replace(layer, kwargs=case.kwargs or {})
    given = []
    for shape in case.shapes:
        x = rng.normal(size=(3, *shape)).astype("float32")
        mask = rng.random((3, shape[0])) < 0.6
        mask[:, -1] = True  # nobody documents what all masked means
        given.append(State(x, mask if case.masked else None))
    assert set(bench.compared(layer, given, "float32")) == set(TARGETS)
