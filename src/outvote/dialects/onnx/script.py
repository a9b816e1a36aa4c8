"""Writes repro.py: a short script that needs onnx, numpy and the runtimes, and proves a finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import REF, Input, Json, Layer, Model, Ref
from outvote.core.source import filled, keywords, literal, one_line
from outvote.core.target import Target
from outvote.dialects.onnx.nouns.devices import ON_CUDA
from outvote.dialects.onnx.nouns.node import WEIGHT, operator_of, origin_of, tensors_of
from outvote.dialects.onnx.nouns.types import CODES, is_narrow
from outvote.findings.answer import right_answer
from outvote.findings.finding import Finding, Proof
from outvote.localize.isolated import Fault
from outvote.run.pool import Pool
from outvote.triage.scripts import (
    ScriptArrays,
    at_a_glance,
    runners,
    started_by,
    table_of,
    transformations,
)

_TEMPLATES = Path(__file__).parent / "templates"  # repro.py, and how each runtime runs a graph
_TWINS = Path(__file__).parent / "workers" / "twins"
_LEVELS = {
    "eager": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_FROM_FILE = """\
model = onnx.load(os.path.join(os.path.dirname(__file__), "model.onnx"))
with np.load(os.path.join(os.path.dirname(__file__), "inputs.npz")) as file:
    x = [file[name] for name in file.files]"""


# How a runtime is called by hand: as the targets do, and nothing else.
_AT_A_GLANCE = {
    "onnxruntime": """\
import onnxruntime as ort; options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.@LEVEL@
print(ort.InferenceSession(model.SerializeToString(), options).run(None, {@FEEDS@})[0])""",
    "openvino": """\
import openvino; read = openvino.Core().read_model(model.SerializeToString())
run = openvino.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
print(run({@FEEDS@})[0])""",
    "reference": "print(onnx.reference.ReferenceEvaluator(model).run(None, {@FEEDS@})[0])",
}


class _Unwritable(Exception):  # noqa: N818 - a limit of the script, not an error
    """The graph holds what cannot be typed: sub-graphs, functions, types that NumPy lacks."""


def script(finding: Finding, targets: Mapping[str, Target], pool: Pool, folder: Path) -> str | None:
    """The text of repro.py; arrays too long to be written out go to arrays.npz beside it."""
    proof = finding.proof
    if proof is None:
        return None
    writer = _Writer(proof.specimen.model, proof.specimen.inputs, pool.blobs)
    try:
        body, inputs = writer.body(), ", ".join(writer.inputs)
    except _Unwritable:
        if _is_narrow(proof.specimen.model):
            return None
        body, inputs = _FROM_FILE.splitlines(), "*x"
    expected, source = right_answer(finding, proof)
    text = _filled(
        finding.title,
        _shown(finding, proof, targets),
        body,
        inputs,
        writer.arrays.source(expected) if expected is not None else "None",
        source,
        max(proof.observed.tolerance, 1e-12),
    )
    writer.arrays.save(folder)
    return text


def _shown(finding: Finding, proof: Proof, targets: Mapping[str, Target]) -> dict[str, Target]:
    """The accused, and of those who are right the one that takes the fewest lines.

    Everybody who took part where nobody is accused, or a twin, whose original is its only witness.
    """
    names = [*proof.observed.outputs, *proof.observed.failures]
    right = [n for n in names if n not in finding.targets and not targets[n].original]
    if finding.accused not in names or finding.triage != "bug" or not right:
        return {n: targets[n] for n in names}
    lines = {n: _template(targets[n].worker).count("\n") for n in right}
    return {n: targets[n] for n in (finding.accused, min(right, key=lines.__getitem__))}


def _template(worker: str) -> str:
    return (_TEMPLATES / f"{worker}.py.txt").read_text(encoding="utf-8")


def short(finding: Finding, targets: Mapping[str, Target], pool: Pool) -> str | None:
    """For one runtime as it is; a transformation, a setup script or a sub-graph takes more."""
    proof, accused = finding.proof, targets.get(finding.accused or "")
    if proof is None or accused is None or accused.worker not in _AT_A_GLANCE:
        return None
    if accused.setup or accused.device:
        return None
    writer = _Writer(proof.specimen.model, proof.specimen.inputs, pool.blobs, compact=True)
    try:
        body = writer.body()
    except _Unwritable:
        return None
    feeds = ", ".join(f'"{name}": {name}' for name in writer.inputs)
    level = _LEVELS.get(accused.mode, "")
    lines = [
        "import numpy as np, onnx, onnx.reference",
        "from onnx import helper, numpy_helper",
        *body,
        *_AT_A_GLANCE[accused.worker]
        .replace("@FEEDS@", feeds)
        .replace("@LEVEL@", level)
        .split("\n"),
    ]
    return at_a_glance(lines, writer.arrays, finding, proof, accused)


def script_of_file(fault: Fault, targets: Mapping[str, Target], folder: Path) -> str:
    """A script that runs the model file in the folder on the targets that took part."""
    shown = {n: t for n, t in targets.items() if n in (*fault.outputs, *fault.failures)}
    names = [n for n in (fault.vote.majority or fault.outputs) if n in fault.outputs]
    writer = _Writer(None, (), None)
    told = writer.arrays.source(fault.outputs[names[0]].arrays[0]) if names else "None"
    writer.arrays.save(folder)
    title = f"{fault.layer.kind} node {fault.layer.name!r}"
    source = f"{', '.join(names)}" or "nobody: the others refuse it"
    return _filled(
        title, shown, _FROM_FILE.splitlines(), "*x", told, source, float(fault.tolerance)
    )


def _filled(
    title: str,
    shown: Mapping[str, Target],
    body: Sequence[str],
    inputs: str,
    expected: str,
    source: str,
    tolerance: float,
) -> str:
    kinds = [target.worker for target in shown.values()]
    return filled(
        _TEMPLATES / "repro.py.txt",
        {
            "TITLE": one_line(title),
            "TARGETS": table_of({n: _environment(n, target) for n, target in shown.items()}),
            "EXPECTED": expected,
            "SOURCE": one_line(source),
            "BODY": "\n    ".join(body),
            "INPUTS": inputs,
            "RUNNERS": runners(_TEMPLATES, kinds, _transformations(shown.values())),
            "OUTPUT": "0",
            "TOLERANCE": f"{tolerance:.2g}",
        },
    )


def _transformations(targets: Iterable[Target]) -> list[str]:
    names = (target.mode for target in targets if target.original)
    return transformations({name: _TWINS / f"{name}.py" for name in names})


def _environment(name: str, target: Target) -> dict[str, str]:
    env = {"TARGET": name, "RUNTIME": target.worker, **target.env, **started_by(target)}
    if target.worker == "onnxruntime":
        env["LEVEL"] = _LEVELS.get(target.mode, _LEVELS["eager"])
    if target.mode in ON_CUDA:
        env |= {"PROVIDER": "CUDAExecutionProvider", **ON_CUDA[target.mode]}
    if target.worker == "openvino" and target.device:
        env["DEVICE"] = "GPU"
    if target.original:
        env["TWIN"] = target.mode
    if target.mode == "fast":
        env["FAST"] = "1"
    return env


def _is_narrow(model: Model) -> bool:
    return any(is_narrow(item.dtype) for item in model.inputs)


@dataclass
class _Writer:
    """The lines that build a graph.

    Names come from a file that nobody vouches for: tensors and constants are numbered.
    """

    model: Model | None
    given: Sequence[Array]
    blobs: BlobStore | None
    compact: bool = False  # one line for a list
    arrays: ScriptArrays = field(default_factory=ScriptArrays)
    _names: dict[Ref, str] = field(default_factory=dict)
    _constants: list[str] = field(default_factory=list)

    @property
    def inputs(self) -> list[str]:
        return [f"x{i}" for i in range(len(self.given))]

    def body(self) -> list[str]:
        assert self.model is not None
        model = self.model
        lines = [
            f"{n} = {self.arrays.source(a)}" for n, a in zip(self.inputs, self.given, strict=True)
        ]
        self._names = {Ref(i.name): n for i, n in zip(model.inputs, self.inputs, strict=True)}
        nodes = [self._node(layer, number) for number, layer in enumerate(model.layers)]
        told = [self._input(*pair) for pair in zip(model.inputs, self.given, strict=True)]
        outputs = [
            f"onnx.ValueInfoProto(name={self._names[r]!r})" for r in dict.fromkeys(model.outputs)
        ]
        opset = {d: v for layer in model.layers for d, v in origin_of(layer).opset.items()}
        imports = [f"helper.make_opsetid({d!r}, {v})" for d, v in opset.items()]
        ir = max(origin_of(layer).ir for layer in model.layers)
        named = {"constants": self._listed(self._constants), "opset": f"[{', '.join(imports)}]"}
        lines += [f"nodes = {self._listed(nodes)}", f"inputs = {self._listed(told)}"]
        if not self.compact:
            lines += [f"{name} = {text}" for name, text in named.items()]
            named = {name: name for name in named}
        return [
            *lines,
            f"graph = helper.make_graph(nodes, 'graph', inputs, [{', '.join(outputs)}], "
            f"{named['constants']})",
            f"model = helper.make_model(graph, opset_imports={named['opset']}, ir_version={ir})",
        ]

    def _input(self, item: Input, array: Array) -> str:
        if is_narrow(item.dtype):
            raise _Unwritable
        name = self._names[Ref(item.name)]
        return f"helper.make_tensor_value_info({name!r}, {CODES[item.dtype]}, {list(array.shape)})"

    def _node(self, layer: Layer, number: int) -> str:
        origin = origin_of(layer)
        if layer.kwargs or origin.functions:
            raise _Unwritable
        reads = [self._argument(layer, item) for item in layer.args]
        gives = [""] * (max(origin.outputs) + 1)
        for place, found in zip(origin.outputs, tensors_of(origin, layer.name), strict=True):
            gives[place] = self._names[found] = f"y{number}" if not place else f"y{number}_{place}"
        domain, operator = operator_of(layer.kind)
        named = {name: self._attribute(layer, value) for name, value in layer.config.items()}
        if domain:
            named["domain"] = repr(domain)
        more = "".join(f", {text}" for text in keywords(named))
        return f"helper.make_node({operator!r}, {reads}, {gives}{more})"

    def _argument(self, layer: Layer, item: Json) -> str:
        if item is None:
            return ""
        if REF in item:
            return self._names[Ref(*item[REF])]
        name = f"w{len(self._constants)}"
        self._constants.append(self._constant(layer, item, name))
        return name

    def _attribute(self, layer: Layer, value: Json) -> str:
        if isinstance(value, Mapping):
            return self._constant(layer, value, "")
        if isinstance(value, list | tuple) and any(isinstance(one, Mapping) for one in value):
            raise _Unwritable
        return literal(list(value) if isinstance(value, tuple) else value)

    def _constant(self, layer: Layer, item: Mapping[str, Any], name: str) -> str:
        if WEIGHT not in item or "type" in item or self.blobs is None:
            raise _Unwritable
        array = np.asarray(self.blobs.get(layer.weights[item[WEIGHT]].digest))
        return f"numpy_helper.from_array({self.arrays.source(array)}, {name!r})"

    def _listed(self, items: Sequence[str]) -> str:
        if self.compact or not items:
            return f"[{', '.join(items)}]"
        return "[\n" + "".join(f"        {item},\n" for item in items) + "    ]"
