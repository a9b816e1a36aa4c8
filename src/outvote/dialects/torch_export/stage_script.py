"""repro.py for training: a call, a loss or an optimiser, what it is given, what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.exercises import Exercise, Pull, Update
from outvote.core.model import Model
from outvote.core.source import literal
from outvote.core.target import Target
from outvote.core.train_protocol import Named
from outvote.dialects.torch_export.nouns.node import WEIGHT, weights_in
from outvote.dialects.torch_export.script import ProgramWriter
from outvote.findings.finding import Finding, Stage
from outvote.triage.scripts import (
    ScriptArrays,
    first_in_process,
    in_processes,
    judging,
    started_by,
    table_of,
)
from outvote.triage.stage_proof import proof_of, shown_in

_TRAINING = Path(__file__).parent / "templates" / "training.py.txt"


def stage_script(
    finding: Finding, stage: Stage, targets: Mapping[str, Target], blobs: BlobStore, folder: Path
) -> str | None:
    """The script; None for what takes a whole program, or where nobody gives a right answer."""
    shown = shown_in(finding, stage, targets)
    found = proof_of(finding, stage)
    if not shown or found is None:
        return None
    names = next(iter(stage.told.values())).names
    arrays = ScriptArrays()
    body = _lines(stage.exercise, stage.part, names[found.place], arrays, blobs)
    if body is None:
        return None
    environments = {
        name: {"MODE": target.mode, **target.env, **started_by(target)}
        for name, target in shown.items()
    }
    text = in_processes(
        finding.title,
        "torch and numpy",
        "MODE",
        table_of(environments),
        (arrays.source(found.expected), found.source),
        [
            "import contextlib, math, operator, tempfile, torch",
            *first_in_process(shown.values()),
            *_TRAINING.read_text(encoding="utf-8").splitlines(),
            *body[:-1],
            *judging(body[-1], found.expected, stage.tolerance),
        ],
    )
    arrays.save(folder)
    return text


def _lines(
    exercise: Exercise | None, part: str, name: str, arrays: ScriptArrays, blobs: BlobStore
) -> list[str] | None:
    """What leads to `y`, and last the line that computes it."""
    if isinstance(exercise, Pull):
        return _pull_lines(exercise, part, name, arrays, blobs)
    if isinstance(exercise, Update):
        return _update_lines(exercise, name, arrays)
    return None


def _pull_lines(
    pull: Pull, part: str, name: str, arrays: ScriptArrays, blobs: BlobStore
) -> list[str]:
    """A function of all tensors whose gradient is asked for; `name` is what by."""
    model = pull.model
    writer = ProgramWriter(model, blobs, arrays)
    body, outputs = writer.calls(), writer.outputs
    fed = [
        f"{name} = {writer.tensor(array, item.dtype)}"
        for name, item, array in zip(writer.inputs, model.inputs, pull.inputs, strict=True)
    ]
    given = [*writer.inputs, *(f"w{place}" for place in range(len(writer.constants)))]
    terms, constants = [], []
    for place, cotangent in enumerate(pull.cotangents):
        if cotangent is not None:
            constants.append(f"c{place} = torch.tensor({arrays.source(cotangent)})")
            terms.append(f"({outputs[place]} * c{place}).sum()")
    if pull.loss is not None and pull.truth is not None:
        constants += [
            f"loss = {_made('nn', pull.loss)}{'.double()' * _is_wide(pull.inputs)}",
            f"truth = torch.tensor({arrays.source(pull.truth)})",
        ]
        terms.append(f"loss({outputs[0]}, truth).sum()")
    listed = ", ".join(given)
    lines = [
        *writer.constants,
        *fed,
        *constants,
        f"def number({listed}):",
        f"    {listed}, = [tensor.clone() for tensor in ({listed},)]  # some calls write over them",
        *(f"    {line}" for line in body),
        f"    return {' + '.join(terms)}",
    ]
    if part == "value":
        return [*lines, f"with apart(): y = plain(made(number)({listed}))"]
    leaf = _variable(model, writer.inputs, name)
    return [*lines, f"y = gradient(number, [{listed}], {leaf})"]


def _is_wide(inputs: tuple[Array, ...]) -> bool:
    return any(array.dtype.name == "float64" for array in inputs)


def _variable(model: Model, inputs: list[str], name: str) -> str:
    """What an input or a weight is called in the script."""
    named = [item.name for item in model.inputs]
    if name in named:
        return inputs[named.index(name)]
    told = [
        f"{layer.name}/{layer.weights[mark[WEIGHT]].name}"
        for layer in model.layers
        for mark in weights_in(layer.kwargs)
    ]
    return f"w{told.index(name)}"


def _made(module: str, named: Named) -> str:
    """A loss with its arguments; lists of numbers are tensors there."""
    config = named.get("config") or {}
    told = [
        f"{key}={f'torch.tensor({value!r})' if isinstance(value, list) else literal(value)}"
        for key, value in config.items()
    ]
    return f"torch.{module}.{named['class_name']}({', '.join(told)})"


def _update_lines(update: Update, name: str, arrays: ScriptArrays) -> list[str]:
    """Steps of an optimiser with given gradients; `name` is of a weight or of what it keeps."""
    weights = ", ".join(arrays.source(array) for array in update.weights)
    steps = [", ".join(arrays.source(array) for array in row) for row in update.gradients]
    if name.startswith("weight "):  # weight PLACE after step NUMBER
        words = name.split()
        found, last = f"w[{words[1]}]", int(words[-1])
    else:  # variable PLACE (NAME of weight PLACE), at the end
        kept, _, place = name[name.index("(") + 1 : -1].rpartition(" of weight ")
        found, last = f"optimizer.state[w[{place}]][{kept!r}]", len(steps)
    config = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in (update.optimizer.get("config") or {}).items()
    }
    wide = ["torch.set_default_dtype(torch.float64)"] if _is_wide(update.weights) else []
    return [
        *wide,
        f"w = [torch.tensor(array, requires_grad=True) for array in [{weights}]]",
        f"optimizer = torch.optim.{update.optimizer['class_name']}(w, **{literal(config)})",
        "step = made(optimizer.step)",
        "for gradients in [",
        *(f"    [{row}]," for row in steps[:last]),
        "]:",
        "    for tensor, array in zip(w, gradients):",
        "        tensor.grad = torch.tensor(array)",
        "    with apart():",
        "        step()",
        f"y = plain({found})",
    ]
