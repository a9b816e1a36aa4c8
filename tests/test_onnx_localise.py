"""What localisation and verdict say of ONNX graphs: fused regions and specifications."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import onnx_models as made
from onnx_models import saved
from outvote.bench.reader import read_file
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.core.model import Layer
from outvote.dialects.onnx.nouns.node import Origin, with_origin
from outvote.dialects.onnx.regions import region_of
from outvote.dialects.onnx.specification import link
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.run.pool import Pool

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
try:
    from onnx_fault_rows import FAULTS
    from onnx_faults import open_pool, plant, write_case
finally:
    del sys.path[0]


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        ("Conv", "https://onnx.ai/onnx/operators/onnx__Conv.html"),
        (
            "ai.onnx.ml::LabelEncoder",
            "https://onnx.ai/onnx/operators/onnx_aionnxml_LabelEncoder.html",
        ),
        (
            "com.microsoft::Gelu",
            "https://github.com/microsoft/onnxruntime/blob/main/docs/"
            "ContribOperators.md#com.microsoft.Gelu",
        ),
        ("own::Shifted", None),
    ],
)
def test_every_operator_has_its_page(kind: str, page: str | None) -> None:
    assert link(Layer("y", kind, {}, [])) == page


def test_a_function_of_the_model_is_specified_by_nobody() -> None:
    origin = Origin({"": 17}, functions=[{"domain": "", "name": "Conv"}])
    assert link(with_origin(Layer("y", "Conv", {}, []), origin)) is None


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with open_pool() as running:
        yield running


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("name", "region"),
    [
        ("onnxruntime", ()),
        ("onnxruntime:all", ("conv", "relu")),
        ("openvino:onnx", ("conv", "relu")),
        ("onnx-reference", ()),
    ],
)
def test_a_fused_node_is_a_region(
    name: str, region: tuple[str, ...], pool: Pool, tmp_path: Path
) -> None:
    if name not in pool.targets:
        pool.add(BUILT_IN[name])
    run = read_file(pool, "onnx-reference", saved(made.convolution_net(), tmp_path))
    x = np.zeros((2, 3, 8, 8), np.float32)
    assert region_of(pool, name, run.reply.model, [x], "relu") == region


@pytest.mark.frameworks
def test_a_fault_of_a_fusion_names_the_nodes_that_were_swallowed(
    pool: Pool, tmp_path: Path
) -> None:
    fault = next(fault for fault in FAULTS if fault.name == "fused_conv_relu_leaks")
    path, data = write_case(fault, tmp_path)
    checked = check_in(pool, Job(path, plant(pool, fault), data=data))
    (finding,) = [found for found in checked.findings if found.triage == "bug"]
    assert "in the whole graph only" in finding.title or "several layers" in finding.reason
    assert "planted fuses Conv 'conv_" in finding.reason
    assert "Relu 'relu_" in finding.reason
    assert finding.proof is not None
    assert [layer.kind for layer in finding.proof.specimen.model.layers] == ["Conv", "Relu"]
