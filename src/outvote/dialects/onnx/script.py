"""Writes repro.py: a short script that needs onnx, numpy and the runtimes, and proves a finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

from outvote.core.arrays import TEXT, Array
from outvote.core.devices import ON_CUDA
from outvote.core.outputs import Outputs
from outvote.core.source import filled, one_line
from outvote.core.target import Target
from outvote.dialects.onnx.nouns.types import is_narrow
from outvote.dialects.onnx.source import GraphSource, Unwritable
from outvote.findings.answer import right_answer, shown_one
from outvote.findings.finding import Finding, Proof
from outvote.localize.isolated import Fault
from outvote.run.pool import Pool
from outvote.triage.scripts import (
    ScriptArrays,
    at_a_glance,
    ending,
    first_in_process,
    in_processes,
    judging,
    right_if,
    started_by,
    table_of,
)

_TEMPLATES = Path(__file__).parent / "templates"  # a script, and how each runtime finds `y`
_TWINS = Path(__file__).parent / "workers" / "twins"
_LEVELS = {
    "eager": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_IMPORTS = "import onnx, onnx.reference; from onnx import helper, numpy_helper"
_FROM_FILE = [
    "folder = os.path.dirname(os.path.abspath(__file__))",
    'model = onnx.load(os.path.join(folder, "model.onnx"))',
    "names = [item.name for item in model.graph.input]",
    'feeds = dict(zip(names, np.load(os.path.join(folder, "inputs.npz")).values()))',
]
# Texts are held against each other as numbers, which `as_numbers` of core/arrays.py makes of them.
_TEXTS = """
import hashlib; codes = [hashlib.sha256(str(text).encode()).digest()[:6] for text in y.ravel()]
y = np.array([int.from_bytes(code, "big") for code in codes], "int64").reshape(y.shape)"""


def script(finding: Finding, targets: Mapping[str, Target], pool: Pool, folder: Path) -> str | None:
    """The text of repro.py; arrays too long to be written out go to arrays.npz beside it."""
    proof = finding.proof
    if proof is None or _has_narrow_types(proof):
        return None
    shown = _shown(finding, proof, targets)
    graph = _graph_source(finding, proof, shown, pool)
    try:
        body = graph.lines()
    except Unwritable:
        body = _FROM_FILE
    claim = _Claim(
        finding.title,
        *right_answer(finding, proof),
        proof.observed.tolerance,
        TEXT in _given_types(proof),
        proof.observed.outputs,
    )
    text = claim.text(shown, [*ending(finding), *body], graph.arrays)
    graph.arrays.save(folder)
    return text


def short(finding: Finding, targets: Mapping[str, Target], pool: Pool) -> str | None:
    """For one runtime as it is; a transformation, a setup script or a sub-graph takes more."""
    proof = finding.proof
    accused = targets.get(shown_one(finding, proof)) if proof else None
    if proof is None or accused is None or accused.setup or accused.original or accused.device:
        return None
    graph = _graph_source(finding, proof, {accused.name: accused}, pool, compact=True)
    try:
        body = graph.lines()
    except Unwritable:
        return None
    *before, last = _run_by(accused, _first_of(proof.observed.outputs, accused)).split("\n")
    lines = [
        f"import numpy as np; {_IMPORTS}",
        *body,
        *before,
        f"print({last.removeprefix('y = ')})",
    ]
    return at_a_glance(lines, graph.arrays, finding, proof, accused)


def script_of_file(fault: Fault, targets: Mapping[str, Target], folder: Path) -> str:
    """A script that runs the model file in the folder on the targets that took part."""
    shown = {n: t for n, t in targets.items() if n in (*fault.outputs, *fault.failures)}
    names = [n for n in (fault.vote.majority or fault.outputs) if n in fault.outputs]
    right = fault.outputs[names[0]] if names else None
    arrays = ScriptArrays()
    claim = _Claim(
        f"{fault.layer.kind} node {fault.layer.name!r}",
        right.arrays[0] if right else None,
        ", ".join(names) or "nobody: the others refuse it",
        float(fault.tolerance),
        right is not None and right.dtypes[0] == TEXT,
        fault.outputs,
    )
    text = claim.text(shown, _FROM_FILE, arrays)
    arrays.save(folder)
    return text


def _shown(finding: Finding, proof: Proof, targets: Mapping[str, Target]) -> dict[str, Target]:
    """One of those who are right, the one that takes the fewest lines, and the accused.

    Everybody who took part where nobody is accused, or a twin, whose original is its only witness.
    """
    names = [*proof.observed.outputs, *proof.observed.failures]
    right = [n for n in names if n not in finding.targets and not targets[n].original]
    if finding.accused not in names or finding.triage != "bug" or not right:
        return {n: targets[n] for n in names}
    lines = {n: _template(targets[n].worker).read_text(encoding="utf-8").count("\n") for n in right}
    return {n: targets[n] for n in (min(right, key=lines.__getitem__), finding.accused)}


def _graph_source(
    finding: Finding,
    proof: Proof,
    shown: Mapping[str, Target],
    pool: Pool,
    compact: bool = False,
) -> GraphSource:
    """OpenCV has to be told of outputs, OpenVINO is told no sizes where they are to be free."""
    told: Sequence[Array] = ()
    answer, _ = right_answer(finding, proof)
    if answer is not None and any(target.worker == "opencv" for target in shown.values()):
        seen = proof.observed
        right = [n for n in (seen.vote.majority or seen.outputs) if n in seen.outputs]
        told = (answer, *(seen.outputs[right[0]].arrays[1:] if right else ()))
    free = any(target.mode == "dynamic" for target in shown.values())
    specimen = proof.specimen
    return GraphSource(specimen.model, specimen.inputs, pool.blobs, told, free, compact)


def _has_narrow_types(proof: Proof) -> bool:
    """Whether NumPy lacks the type of an input, or of what is compared."""
    fed = [item.dtype for item in proof.specimen.model.inputs]
    return any(map(is_narrow, (*fed, *_given_types(proof))))


def _given_types(proof: Proof) -> list[str]:
    return [found.dtypes[0] for found in proof.observed.outputs.values() if found.dtypes]


def _template(worker: str) -> Path:
    return _TEMPLATES / f"{worker}.py.txt"


def _first_of(outputs: Mapping[str, Outputs], target: Target) -> Array | None:
    found = outputs.get(target.name)
    return found.arrays[0] if found and found.arrays else None


def _run_by(target: Target, gave: Array | None) -> str:
    """The lines that set `y` to what a target makes of `model` and `feeds`."""
    twin = (_TWINS / f"{target.mode}.py").read_text(encoding="utf-8") if target.original else ""
    pinned = {} if target.mode == "fast" else {"INFERENCE_PRECISION_HINT": "f32"}
    marks = {
        "LEVEL": _LEVELS.get(target.mode, _LEVELS["eager"]),
        "PROVIDER": f"{'CUDA' if target.device else 'CPU'}ExecutionProvider",
        "DEVICE": "GPU" if target.device else "CPU",
        "PRECISION": repr(pinned),
        "TWIN": repr(twin),
        "FIT": _fit(gave),
    }
    return filled(_template(target.worker), marks).rstrip("\n")


def _fit(gave: Array | None) -> str:
    """What OpenCV has not: numbers without a dimension and, going out, float16 and truth values.

    Its worker makes them of what comes out, so they are in what it gave.
    """
    if gave is None:
        return ""
    typed = f'.astype("{gave.dtype}")' if gave.dtype.name in ("float16", "bool") else ""
    return typed + ("" if gave.ndim else ".reshape(())")


@dataclass(frozen=True)
class _Claim:
    """What a script shows: which answer is right, by whom, how closely, and who gave which."""

    title: str
    expected: Array | None  # None: a right target refuses
    source: str
    tolerance: float
    is_text: bool
    given: Mapping[str, Outputs]  # by target; others fail

    def text(self, shown: Mapping[str, Target], body: Sequence[str], arrays: ScriptArrays) -> str:
        """In one process, if nobody needs one of its own; who fails comes last there."""
        written = "None" if self.expected is None else arrays.source(self.expected)
        failing = [name for name in shown if name not in self.given]
        if self.expected is None or len(failing) > 1 or any(map(_needs_process, shown.values())):
            return self._in_processes(shown, body, written)
        return filled(
            _TEMPLATES / "plain.py.txt",
            {
                "TITLE": one_line(self.title),
                "EXPECTED": written,
                "SOURCE": one_line(self.source),
                "BODY": "\n".join(body),
                "RIGHT": "\n    ".join(right_if(self.expected, self.tolerance)),
                "RUNS": "\n".join(self._runs(sorted(shown.items(), key=lambda x: x[0] in failing))),
            },
        )

    def _runs(self, shown: Sequence[tuple[str, Target]]) -> list[str]:
        lines = []
        for place, (name, target) in enumerate(shown):
            verdict = f"judge({name!r}, y)" + (" or wrong" if place else "")
            end = place == len(shown) - 1
            lines += [self._run_by(target), f"sys.exit({verdict})" if end else f"wrong = {verdict}"]
        return lines

    def _run_by(self, target: Target) -> str:
        return _run_by(target, _first_of(self.given, target)) + (_TEXTS if self.is_text else "")

    def _in_processes(self, shown: Mapping[str, Target], body: Sequence[str], written: str) -> str:
        told = {
            n: {"TARGET": n, **ON_CUDA.get(t.mode, {}), **t.env, **started_by(t)}
            for n, t in shown.items()
        }
        branches = [
            f'if os.environ["TARGET"] == {name!r}:\n{indent(self._run_by(target), "    ")}'
            for name, target in shown.items()
        ]
        lines = [*first_in_process(shown.values()), _IMPORTS, *body]
        return in_processes(
            self.title,
            "onnx, numpy and the runtimes",
            "TARGET",
            table_of(told),
            (written, self.source),
            [*lines, *judging("\n".join(branches), self.expected, self.tolerance)],
        )


def _needs_process(target: Target) -> bool:
    """Whether it is not what a plain import gives."""
    alien = target.python or target.path or target.device
    return bool(alien or target.setup or target.env or target.original)
