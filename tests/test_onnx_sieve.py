"""Graphs in bulk: packs that are checked, cases that answer for themselves, what parts targets."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from onnx import helper

import onnx_models as made
from outvote.bench.sieve import GraphSieve, answers_of
from outvote.core.batch import (
    GraphAnswer,
    GraphCase,
    Pack,
    RunGraphs,
    answer_item,
    answers_in,
    cases_in,
    items,
    packed_answers,
    packed_cases,
)
from outvote.core.errors import ProtocolError
from outvote.core.target import Outcome, Run
from outvote.dialects.onnx.nouns.batch import DrawGraphs
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.judge.partings import alike, is_parted
from outvote.run.local import LocalPool
from outvote.run.pool import Pool

X = np.array([[-1.0, 2.0, 0.5]], np.float32)
GREEDY = """
import numpy as np
from onnx.reference.ops.op_sign import Sign
Sign._run = lambda self, x: (np.ones(1 << 33),)
"""


def case(*operators: str, x: Any = X) -> GraphCase:
    """A chain of operators that each read one tensor."""
    names = [f"t{place}" for place in range(len(operators) + 1)]
    nodes = [
        helper.make_node(operator, [before], [after])
        for operator, before, after in zip(operators, names, names[1:], strict=False)
    ]
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    ends = [made.value(name, x.shape, kind) for name in (names[0], names[-1])]
    return GraphCase(made.model(nodes, ends[:1], ends[1:]).SerializeToString(), [x])


def answer(*outputs: Any, outcome: Outcome = Outcome.OK) -> GraphAnswer:
    return GraphAnswer(outcome, [np.asarray(array, np.float32) for array in outputs])


# Packs


def test_what_is_packed_comes_back() -> None:
    feeds: list[Any] = [X, np.array(3), np.zeros((0, 2), bool), np.array([1.5], np.float16)]
    (found,) = cases_in(packed_cases([GraphCase(b"graph", feeds)]))
    assert found.content == b"graph"
    for before, after in zip(feeds, found.feeds, strict=True):
        assert (before.dtype, before.shape) == (after.dtype, after.shape)
        assert np.array_equal(before, after)


def test_answers_are_as_many_as_cases() -> None:
    told = [answer(X), GraphAnswer(Outcome.CRASH, message="died")]
    pack = Pack()
    for one in told:
        pack.add_packed(b"".join(answer_item(one)))
    first, second = answers_in(pack.array, 2)
    assert np.array_equal(first.outputs[0], X)
    assert (second.outcome, second.message) == (Outcome.CRASH, "died")
    with pytest.raises(ProtocolError, match="2 answers to 3 cases"):
        answers_in(pack.array, 3)


HEAD = struct.Struct("<II")


@pytest.mark.parametrize(
    "data",
    [
        b"\1",
        HEAD.pack(9, 0) + b"[]",
        HEAD.pack(2, 0) + b"{]",
        HEAD.pack(2, 0) + b"[]",
        HEAD.pack(100_000, 0) + b"[" * 100_000,
        HEAD.pack(24, 0) + b'[null, [["float32",[4]]]]'[:24],
        HEAD.pack(25, 0) + b'[null, [["float32",[4]]]]',
        HEAD.pack(26, 0) + b'[null, [["float32",[-4]]]]',
        HEAD.pack(24, 0) + b'[null, [["object",[1]]]]',
        HEAD.pack(10, 0) + b"[null, []]",
    ],
)
def test_bytes_that_are_no_pack_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        cases_in(np.frombuffer(data, np.uint8))


@pytest.mark.parametrize("header", [None, ["ok"], ["no_such", "", 0.0], ["ok", "", "long"], 7])
def test_headers_that_are_no_answer_are_refused(header: Any) -> None:
    pack = Pack()
    pack.add(header)
    assert len(list(items(pack.array))) == 1
    with pytest.raises(ProtocolError):
        answers_in(pack.array, 1)


# Comparing


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 2.0], [1.0, 2.000001], True),
        ([1.0, 2.0], [1.0, 2.001], False),
        ([1e-9, 2.0], [2e-9, 2.0], True),
        ([np.nan, 2.0], [np.nan, 2.0], True),
        ([np.nan, 2.0], [1.0, 2.0], False),
        ([np.inf, 2.0], [np.inf, 2.000001], True),
        ([np.inf, 2.0], [-np.inf, 2.0], False),
        ([np.inf, 2.0], [1e38, 2.0], False),
        ([0.0, -0.0], [-0.0, 0.0], True),
        ([], [], True),
        ([[1.0]], [1.0], False),
    ],
)
def test_a_cheap_look(a: Any, b: Any, wanted: bool) -> None:
    for dtype in (np.float32, np.float64):
        assert alike(np.array(a, dtype), np.array(b, dtype), np.dtype(dtype).name) is wanted


def test_types_and_whole_numbers_are_compared_exactly() -> None:
    assert not alike(np.ones(1, np.float32), np.ones(1, np.float64), "float32")
    assert not alike(np.array([1, 2]), np.array([1, 3]), "int64")
    assert alike(np.array([100.0], np.float16), np.array([100.25], np.float16), "float16")


def test_bfloat16_travels_as_float32_and_is_compared_as_what_it_is() -> None:
    one, near, far = (np.array([100.0 + d], np.float32) for d in (0.0, 2.0, 20.0))

    def typed(array: Any, dtype: str = "bfloat16") -> GraphAnswer:
        (back,) = answers_in(packed_answers([GraphAnswer(Outcome.OK, [array], types=(dtype,))]), 1)
        return back

    assert not is_parted({"a": typed(one), "b": typed(near)})
    assert is_parted({"a": typed(one), "b": typed(far)})
    assert is_parted({"a": typed(one, "float32"), "b": typed(near, "float32")})
    assert is_parted({"a": typed(one), "b": typed(one, "float32")})  # of another type
    short = packed_answers([GraphAnswer(Outcome.OK, [one], types=("bfloat16", "float32"))])
    with pytest.raises(ProtocolError, match="other types than outputs"):
        answers_in(short, 1)


def test_a_gap_says_nothing_and_a_failure_does() -> None:
    ran, gap = answer([1.0]), answer(outcome=Outcome.UNSUPPORTED)
    assert not is_parted({"a": ran, "b": gap})
    assert not is_parted({"a": gap, "b": answer(outcome=Outcome.CRASH)})
    assert not is_parted({"a": answer(outcome=Outcome.ERROR), "b": answer(outcome=Outcome.ERROR)})
    assert is_parted({"a": gap, "b": ran, "c": answer(outcome=Outcome.ERROR)})
    assert is_parted({"a": gap, "b": ran, "c": answer([2.0])})
    assert is_parted({"a": ran, "b": answer([1.0], [1.0])})


# Isolation


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    script = tmp_path_factory.mktemp("planted") / "planted.py"
    script.write_text(Path(__file__).with_name("onnx_planted.py").read_text() + GREEDY)
    reference = BUILT_IN["onnx-reference"]
    planted = replace(reference, name="planted", library="planted", setup=script)
    names = ("onnxruntime", "opencv", "openvino:onnx", "openvino:onnx:dynamic")
    with LocalPool([reference, planted, *(BUILT_IN[name] for name in names)]) as running:
        yield running


HARMLESS = ("Tanh", "Exp", "Floor")


@pytest.mark.frameworks
def test_a_case_that_dies_hangs_or_takes_all_memory_loses_itself_alone(pool: Pool) -> None:
    cases = [case("Tanh"), case("Abs"), case("Exp"), case("Neg"), case("Sign"), case("Erf")]
    request = RunGraphs(cases=packed_cases([*cases, case("Floor")]), seconds=1.0, steps=7)
    run = pool.ask("planted", request)
    assert run.ok, run.message
    found = answers_in(run.reply.answers, 7)
    assert [one.outcome for one in found] == [
        *(Outcome.OK, Outcome.CRASH, Outcome.OK, Outcome.HANG, Outcome.MEMORY, Outcome.ERROR),
        Outcome.OK,
    ]
    assert "SIGSEGV" in found[1].message
    assert np.allclose(found[2].outputs[0], np.exp(X))
    assert np.array_equal(found[6].outputs[0], np.floor(X))
    assert pool.restarts["planted"] == 0


@pytest.mark.frameworks
@pytest.mark.parametrize(
    "name", ["onnxruntime", "opencv", "openvino:onnx", "openvino:onnx:dynamic", "onnx-reference"]
)
def test_every_runtime_runs_packs(pool: Pool, name: str) -> None:
    for _ in range(2):  # the second time what was begun in the first would be missing
        cases = packed_cases([case(*chain) for chain in itertools.permutations(HARMLESS)])
        run = pool.ask(name, RunGraphs(cases=cases, steps=6))
        assert run.ok, run.message
        for one, chain in zip(
            answers_in(run.reply.answers, 6), itertools.permutations(HARMLESS), strict=True
        ):
            wanted = X
            for operator in chain:
                wanted = getattr(np, operator.lower())(wanted)
            assert one.outcome is Outcome.OK, one.message
            assert np.allclose(one.outputs[0], wanted, atol=1e-6)


class Mortal:
    """A pool whose worker dies of one case; it says in which place, if it knows."""

    def __init__(self, deadly: bytes, tells: bool) -> None:
        self.targets = {"a": BUILT_IN["onnx-reference"]}
        self.asked = 0
        self._deadly = deadly
        self._tells = tells

    def add(self, target: Any) -> None:
        self.targets[target.name] = target

    def ask(self, name: str, request: RunGraphs) -> Run[Any]:
        self.asked += 1
        protos = [one.content for one in cases_in(request.cases)]
        if self._deadly in protos:
            place = str(protos.index(self._deadly)) if self._tells else None
            return Run(name, Outcome.CRASH, message="died", layer=place)
        pack = Pack()
        for proto in protos:
            pack.add_packed(b"".join(answer_item(answer([float(proto)]))))
        reply = type("Reply", (), {"answers": pack.array})
        return Run(name, Outcome.OK, reply)


@pytest.mark.parametrize("tells", [True, False])
def test_a_worker_that_dies_of_a_case_is_asked_on_without_it(tells: bool) -> None:
    cases = [GraphCase(str(number).encode(), []) for number in range(10)]
    mortal = Mortal(b"7", tells)
    found = answers_of(cast(Pool, mortal), "a", packed_cases(cases), 10)
    assert [one.outcome for one in found] == [
        Outcome.CRASH if number == 7 else Outcome.OK for number in range(10)
    ]
    assert [float(one.outputs[0][0]) for one in found if one.outcome is Outcome.OK] == [
        *(0, 1, 2, 3, 4, 5, 6, 8, 9)
    ]
    assert not tells or mortal.asked == 4  # all, those before, the deadly one, those behind


# Sifting


@pytest.mark.frameworks
def test_what_parts_targets_is_found_and_what_does_not_is_not(pool: Pool) -> None:
    kinds = ("Relu", "Tanh", "Sigmoid", "Sqrt", "Add", "Mul", "Exp")
    wanted = DrawGraphs(seed=1, first=0, count=40, least=1, most=3, kinds=kinds)
    with GraphSieve(pool, ["onnxruntime", "planted"], "onnx-reference", wanted) as sieve:
        packs = list(itertools.islice(sieve.packs(), 3))
    assert [pack.first for pack in packs] == [0, 40, 80]
    found = [one for pack in packs for one in pack.parted]
    assert found
    relus = [b"Relu" in one.case.content for one in found]
    assert sum(relus) > 0.8 * len(relus)  # the others are integers, which planted refuses or not
    assert all(pack.valid == 40 for pack in packs)
    again = DrawGraphs(seed=1, first=found[0].number, count=1, least=1, most=3, kinds=kinds)
    run = pool.ask("onnx-reference", again)
    assert cases_in(run.reply.cases)[0].content == found[0].case.content


@pytest.mark.frameworks
def test_a_slow_target_gets_a_worker_per_place_at_work(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "jobs", 3)
    wanted = DrawGraphs(seed=1, first=0, count=4, kinds=("Relu", "Conv"))
    with GraphSieve(pool, ["onnxruntime", "openvino:onnx"], "onnx-reference", wanted) as sieve:
        assert len(list(itertools.islice(sieve.packs(), 4))) == 4
    lanes = [name for name in pool.targets if name.startswith("openvino:onnx (sifts")]
    assert len(lanes) == 3
