"""Writes repro.py: a short script that needs torch and numpy, and proves a finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.devices import ON_CUDA
from outvote.core.model import REF, Json, Layer, Model, Ref
from outvote.core.source import filled, keywords, literal, one_line
from outvote.core.target import Target
from outvote.dialects.torch_export.nouns.node import (
    DEVICE,
    MARKS,
    SIZE,
    SIZE_FUNCTIONS,
    WEIGHT,
    paths_of,
    written_operator,
)
from outvote.dialects.torch_export.nouns.twins import FILES
from outvote.findings.answer import right_answer, shown_one
from outvote.findings.finding import Finding
from outvote.localize.isolated import Fault
from outvote.run.pool import Pool
from outvote.triage.scripts import (
    ScriptArrays,
    at_a_glance,
    ending,
    runners,
    started_by,
    table_of,
    transformations,
)

# How a mode runs a function, where two lines say it.
_AT_A_GLANCE = {
    "eager": "print(forward(@INPUTS@))",
    "inductor": "print(torch.compile(forward)(@INPUTS@))",
    "aot_eager": 'print(torch.compile(forward, backend="aot_eager")(@INPUTS@))',
    "script": "print(torch.jit.trace(forward, (@INPUTS@,))(@INPUTS@))",
    "dynamic": "print(torch.compile(forward, dynamic=True)(@INPUTS@))",
    "decomposed": "from torch.fx.experimental.proxy_tensor import make_fx\n"
    "print(make_fx(forward, torch._decomp.core_aten_decompositions())(@INPUTS@)(@INPUTS@))",
}
_TWINS = Path(__file__).parent / "workers" / "twins"
_TEMPLATES = Path(__file__).parent / "templates"  # repro.py, and how each target runs a function


def script(finding: Finding, targets: Mapping[str, Target], pool: Pool, folder: Path) -> str | None:
    """The text of repro.py; arrays too long to be written out go to arrays.npz beside it."""
    proof = finding.proof
    if proof is None or not proof.specimen.inputs:
        return None
    writer = ProgramWriter(proof.specimen.model, pool.blobs)
    expected, source = right_answer(finding, proof)
    told = writer.arrays.source(expected) if expected is not None else "None"
    inputs = [
        writer.tensor(array, item.dtype)
        for item, array in zip(proof.specimen.model.inputs, proof.specimen.inputs, strict=True)
    ]
    body = writer.body()
    shown = {n: targets[n] for n in (*proof.observed.outputs, *proof.observed.failures)}
    text = _filled(
        finding.title,
        shown,
        told,
        source,
        max(proof.observed.tolerance, 1e-12),
        [*ending(finding), *writer.constants, f"INPUTS = {_listed(inputs)}"],
        [f"def forward({', '.join(writer.inputs)}):", *(f"    {line}" for line in body)],
    )
    writer.arrays.save(folder)
    return text


def short(finding: Finding, targets: Mapping[str, Target], pool: Pool) -> str | None:
    """For a mode of PyTorch as it is; a converter or a setup script takes more."""
    proof = finding.proof
    accused = targets.get(shown_one(finding, proof)) if proof else None
    if proof is None or accused is None or accused.mode not in _AT_A_GLANCE or accused.setup:
        return None
    model = proof.specimen.model
    writer = ProgramWriter(model, pool.blobs)
    pairs = zip(writer.inputs, model.inputs, proof.specimen.inputs, strict=True)
    given = [f"{name} = {writer.tensor(array, item.dtype)}" for name, item, array in pairs]
    body = writer.body()
    inputs = ", ".join(writer.inputs)
    lines = [
        "import math, operator, numpy as np, torch",
        *writer.constants,
        *given,
        f"def forward({inputs}):",
        *(f"    {line}" for line in body),
        *_AT_A_GLANCE[accused.mode].replace("@INPUTS@", inputs).split("\n"),
    ]
    return at_a_glance(lines, writer.arrays, finding, proof, accused)


def script_of_file(fault: Fault, targets: Mapping[str, Target], folder: Path) -> str:
    """What to type where a plain script cannot be."""
    shown = [n for n in targets if n in (*fault.outputs, *fault.failures)]
    title = one_line(f"{fault.layer.kind} {fault.layer.name}")
    return (
        f'"""{title}: the model is too large for a script of its own."""\n'
        "import subprocess, sys\n"
        f"TARGETS = {','.join(shown)!r}\n"
        'COMMAND = ["-m", "outvote", "check", "model.pt2", "--data", "inputs.npz"]\n'
        'sys.exit(subprocess.call([sys.executable, *COMMAND, "--targets", TARGETS]))\n'
    )


def _filled(
    title: str,
    shown: Mapping[str, Target],
    expected: str,
    source: str,
    tolerance: float,
    constants: Sequence[str],
    body: Sequence[str],
) -> str:
    return filled(
        _TEMPLATES / "repro.py.txt",
        {
            "TITLE": one_line(title),
            "TARGETS": table_of({n: _environment(n, target) for n, target in shown.items()}),
            "EXPECTED": expected,
            "SOURCE": one_line(source),
            "CONSTANTS": "\n    ".join(constants),
            "BODY": "\n    ".join(body),
            "RUNNERS": runners(
                _TEMPLATES, map(_runner, shown.values()), _transformations(shown.values())
            ),
            "TOLERANCE": f"{tolerance:.2g}",
        },
    )


def _runner(target: Target) -> str:
    return target.mode.partition(":")[0] if target.worker == "torch" else target.worker


def _transformations(targets: Iterable[Target]) -> list[str]:
    names = (target.mode for target in targets if target.worker == "twin")
    return transformations({name: _TWINS / f"{FILES[name]}.py" for name in names})


def _environment(name: str, target: Target) -> dict[str, str]:
    env = {"TARGET": name, "RUNTIME": _runner(target), **target.env, **started_by(target)}
    if target.device:
        env |= {"DEVICE": "cuda", **ON_CUDA[target.mode.partition(":")[2]]}
    return env | ({"TWIN": target.mode} if target.worker == "twin" else {})


@dataclass
class ProgramWriter:
    """The lines of a function.

    Names come from a file that nobody vouches for: tensors and constants are numbered.
    """

    model: Model
    blobs: BlobStore
    arrays: ScriptArrays = field(default_factory=ScriptArrays)
    constants: list[str] = field(default_factory=list)
    _names: dict[Ref, str] = field(default_factory=dict)

    @property
    def inputs(self) -> list[str]:
        return [f"x{place}" for place in range(len(self.model.inputs))]

    def tensor(self, array: Array, dtype: str) -> str:
        narrow = ".bfloat16()" if dtype == "bfloat16" else ""
        return f"torch.tensor({self.arrays.source(array)}){narrow}"

    def calls(self) -> list[str]:
        self._names = {Ref(i.name): n for i, n in zip(self.model.inputs, self.inputs, strict=True)}
        return [self._line(layer, number) for number, layer in enumerate(self.model.layers)]

    @property
    def outputs(self) -> list[str]:
        """What the outputs are called behind the calls."""
        return [self._names[ref] for ref in self.model.outputs]

    def body(self) -> list[str]:
        return [*self.calls(), f"return {self.outputs[0]}"]

    def _line(self, layer: Layer, number: int) -> str:
        told = {**layer.config, **layer.kwargs}
        named = {name: self._argument(layer, value) for name, value in told.items()}
        given = list(named.values()) if layer.kind in SIZE_FUNCTIONS else keywords(named)
        for place, path in enumerate(paths_of(layer)):
            steps = "".join(f"[{step}]" for step in path)
            self._names[Ref(layer.name, place)] = f"y{number}{steps}"
        return f"y{number} = {written_operator(layer.kind)}({', '.join(given)})"

    def _argument(self, layer: Layer, told: Json) -> str:
        if isinstance(told, Mapping):
            if REF in told:
                return self._names[Ref(*told[REF])]
            if SIZE in told:
                return self._names[Ref(*told[SIZE][REF])]
            if WEIGHT in told:
                return self._constant(layer, told)
            ((mark, value),) = told.items()
            if mark in MARKS:
                return "torch.get_default_device()" if mark == DEVICE else f"torch.{value}"
        if isinstance(told, list | tuple):
            return _listed([self._argument(layer, item) for item in told])
        return literal(told)

    def _constant(self, layer: Layer, told: Mapping[str, Any]) -> str:
        array = np.asarray(self.blobs.get(layer.weights[told[WEIGHT]].digest))
        name = f"w{len(self.constants)}"
        self.constants.append(f"{name} = {self.tensor(array, str(told.get('type', '')))}")
        return name


def _listed(items: Sequence[str]) -> str:
    return f"[{', '.join(items)}]"
