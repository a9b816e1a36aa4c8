"""Archives of PyTorch programs that are read without PyTorch; hostile ones are refused."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.core.blobs import BlobStore
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.model import Ref
from outvote.core.protocol import ModelRead
from outvote.dialects.torch_export.targets import BUILT_IN
from outvote.dialects.torch_export.workers.shared.read import read
from outvote.worker.main import Refused

Change = Callable[[dict[str, Any]], None]
FREE = {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": None}}


def size(n: int) -> dict[str, int]:
    return {"as_int": n}


def meta(*sizes: Any, strides: tuple[int, ...] = (), offset: int = 0) -> dict[str, Any]:
    steps = strides or tuple(np.cumprod([1, *(3 for _ in sizes[1:])])[::-1].tolist())
    return {
        "dtype": 7,
        "sizes": list(sizes),
        "strides": [size(n) for n in steps],
        "storage_offset": size(offset),
        "layout": 7,
        "device": {"type": "cpu"},
    }


def tensor(name: str) -> dict[str, Any]:
    return {"as_tensor": {"name": name}}


def call(target: str, gives: str, stack: str = "", trace: str = "", **given: Any) -> dict[str, Any]:
    return {
        "target": f"torch.ops.aten.{target}",
        "inputs": [{"name": name, "arg": arg, "kind": 1} for name, arg in given.items()],
        "outputs": [tensor(gives)],
        "metadata": {"nn_module_stack": stack, "stack_trace": trace},
    }


def program() -> dict[str, Any]:
    """relu_(linear(x, w)): the archive's graph, descriptions and raw numbers."""
    stack = "L__self__,,my.Net;L__self__head,layer2.0.head,torch.nn.modules.linear.Linear"
    trace = 'File "/home/me/model.py", line 83, in forward\n    x\n  File "/x/site-packages/torch/'
    nodes = [
        call(
            "linear.default",
            "h",
            stack,
            trace + 'nn.py", line 1',
            input=tensor("x"),
            weight=tensor("p_w"),
        ),
        call("relu_.default", "y", self=tensor("h")),
        call("add.Tensor", "z", self=tensor("h"), other=tensor("x")),
    ]
    specs = [
        {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "head.weight"}},
        {"user_input": {"arg": tensor("x")}},
    ]
    form = meta(FREE, size(3))
    graph = {
        "nodes": nodes,
        "inputs": [tensor("p_w"), tensor("x")],
        "tensor_values": dict.fromkeys(("x", "h", "y", "z"), form),
        "outputs": [tensor("z")],
    }
    signature = {"input_specs": specs, "output_specs": [{"user_output": {"arg": tensor("z")}}]}
    described = {
        "path_name": "weight_0",
        "use_pickle": False,
        "tensor_meta": meta(size(3), size(3)),
    }
    return {
        "models/model.json": {"graph_module": {"graph": graph, "signature": signature}},
        "data/weights/model_weights_config.json": {"config": {"head.weight": described}},
        "data/weights/weight_0": np.arange(9, dtype=np.float32).tobytes(),
        "data/sample_inputs/model.pt": b"a pickle that nobody opens",
    }


def written(members: dict[str, Any], path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(
                f"m/{name}", content if isinstance(content, bytes) else json.dumps(content)
            )
    return path


@pytest.fixture
def reading(tmp_path: Path) -> Callable[..., ModelRead]:
    def found(change: Change = lambda members: None) -> ModelRead:
        members = program()
        change(members)
        blobs = tmp_path / "blobs"
        blobs.mkdir(exist_ok=True)
        return read(written(members, tmp_path / "m.pt2"), BlobStore(blobs))

    return found


def graph_of(members: dict[str, Any]) -> Any:
    return members["models/model.json"]["graph_module"]["graph"]


def weight_of(members: dict[str, Any]) -> Any:
    return members["data/weights/model_weights_config.json"]["config"]["head.weight"]


def test_calls_are_named_by_their_module_and_line(reading: Callable[..., ModelRead]) -> None:
    model = reading().model
    assert [layer.name for layer in model.layers] == ["layer2.0.head (model.py:83)", "relu_", "add"]
    assert [layer.kind for layer in model.layers] == [
        "aten.linear",
        "aten.relu_",
        "aten.add.Tensor",
    ]


def test_the_free_first_size_is_the_batch(reading: Callable[..., ModelRead]) -> None:
    found = reading()
    assert (found.model.inputs[0].shape, found.model.inputs[0].batch) == ((None, 3), 0)
    assert found.output_shapes == [[None, 3]]
    assert found.model.outputs == (Ref("add"),)


def test_who_reads_a_tensor_that_was_written_over_reads_what_was_written(
    reading: Callable[..., ModelRead],
) -> None:
    add = reading().model.layer("add")
    assert add.kwargs["self"] == {"$ref": ["relu_", 0]}


def test_writing_into_a_view_is_refused_if_the_whole_is_read_again(
    reading: Callable[..., ModelRead],
) -> None:
    def change(members: dict[str, Any]) -> None:
        graph = graph_of(members)
        view = call("select.int", "v", self=tensor("h"), dim={"as_int": 0}, index={"as_int": 0})
        graph["nodes"][1:2] = [view, call("relu_.default", "y", self=tensor("v"))]
        graph["tensor_values"]["v"] = meta(size(3))

    with pytest.raises(Refused, match=r"writes into a view of 'h' \(relu_\).*run_decompositions"):
        reading(change)


def test_a_tensor_is_read_by_its_strides(reading: Callable[..., ModelRead], tmp_path: Path) -> None:
    def change(members: dict[str, Any]) -> None:
        weight_of(members)["tensor_meta"] = meta(size(2), size(3), strides=(1, 3), offset=1)

    (weight,) = reading(change).model.layers[0].weights
    array = BlobStore(tmp_path / "blobs").get(weight.digest)
    np.testing.assert_array_equal(array, [[1, 4, 7], [2, 5, 8]])


def _pickled(members: dict[str, Any]) -> None:
    weight_of(members)["use_pickle"] = True


def _outside(members: dict[str, Any]) -> None:
    weight_of(members)["tensor_meta"] = meta(size(3), size(3), offset=1)


def _negative(members: dict[str, Any]) -> None:
    weight_of(members)["tensor_meta"] = meta(size(3), size(3), strides=(-1, 1))


def _huge(members: dict[str, Any]) -> None:
    weight_of(members)["tensor_meta"] = meta(size(1 << 40), size(1 << 20), strides=(0, 0))


def _elsewhere(members: dict[str, Any]) -> None:
    weight_of(members)["path_name"] = "../../../etc/passwd"


def _python(members: dict[str, Any]) -> None:
    graph_of(members)["nodes"][1]["target"] = "os.system"


def _script_object(members: dict[str, Any]) -> None:
    graph_of(members)["nodes"][1]["inputs"][0]["arg"] = {"as_custom_obj": {"name": "o"}}


def _sub_program(members: dict[str, Any]) -> None:
    graph_of(members)["nodes"][1]["target"] = "torch.ops.higher_order.cond"


def _nothing(members: dict[str, Any]) -> None:
    graph_of(members)["nodes"][1]["inputs"][0]["arg"] = tensor("nobody")


def _no_graph(members: dict[str, Any]) -> None:
    members["models/model.json"] = [1, 2]


def _no_json(members: dict[str, Any]) -> None:
    members["models/model.json"] = b"[" * 100_000


def _complex(members: dict[str, Any]) -> None:
    graph_of(members)["tensor_values"]["x"] = {**meta(FREE, size(3)), "dtype": 10}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_pickled, "is pickled, and pickles are not opened"),
        (_outside, "does not lie in its 9 numbers"),
        (_negative, "the strides"),
        (_huge, "does not lie in its 9 numbers"),
        (_elsewhere, "which the archive does not hold"),
        (_python, "calls 'os.system', which is no operator"),
        (_script_object, "custom_obj, which is not supported"),
        (_sub_program, r"sub-program \(higher_order.cond\)"),
        (_nothing, "'nobody', which nothing gives"),
        (_no_graph, "is not a valid PyTorch program"),
        (_no_json, "is not readable JSON"),
        (_complex, r"not supported \(complex, 8 bits\)"),
    ],
)
def test_what_is_not_right_is_refused_in_a_sentence(
    reading: Callable[..., ModelRead], change: Change, told: str
) -> None:
    with pytest.raises(Refused, match=told):
        reading(change)


def test_no_text_of_the_archive_is_evaluated(reading: Callable[..., ModelRead]) -> None:
    def change(members: dict[str, Any]) -> None:
        told = {"as_expr": {"expr_str": "__import__('os').abort()", "hint": None}}
        graph_of(members)["tensor_values"]["x"] = meta(told, size(3))

    assert reading(change).model.inputs[0].shape == (None, 3)


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"data/x": b""}, "has no models/"),
        ({"models/a.json": {}, "models/b.json": {}}, "holds 2 programs"),
        ({"models/a.json": {}, "data/aotinductor/a/a.so": b""}, "machine code by AOTInductor"),
        ({"serialized_exported_program.json": {}}, "before 2.8, with pickled weights"),
        ({"models/a.json": {}, "../../evil": b""}, "points outside the archive"),
    ],
)
def test_an_archive_is_looked_at_before_it_is_read(
    members: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=told):
        dialect("torch_export").files.inspect(written(members, tmp_path / "m.pt2"), None)


def test_every_transformation_is_held_against_the_program_and_has_no_vote() -> None:
    for target in (t for t in BUILT_IN.values() if t.twin):
        assert (target.original, target.library, target.borrows) == ("torch:eager", "torch", {})
        assert not target.can("float64")
