"""repro.py for training: a layer, a loss or an optimiser, what it is given, what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.dtypes import asks_for
from outvote.core.exercises import Pull, Update
from outvote.core.source import literal
from outvote.core.specimen import Specimen
from outvote.core.target import Target
from outvote.core.train_protocol import Named
from outvote.dialects.keras.script import CallWriter, environments
from outvote.findings.finding import Finding, Stage
from outvote.triage.scripts import ScriptArrays, first_in_process, in_processes, judging
from outvote.triage.stage_proof import proof_of, shown_in

_GRADIENTS = Path(__file__).parent / "templates" / "gradients.py.txt"


def stage_script(
    finding: Finding, stage: Stage, targets: Mapping[str, Target], blobs: BlobStore, folder: Path
) -> str | None:
    """The script; None for what takes a whole model, or where nobody gives a right answer."""
    shown = shown_in(finding, stage, targets)
    found = proof_of(finding, stage)
    if not shown or found is None:
        return None
    expected, source, place = found.expected, found.source, found.place
    exercise = stage.exercise
    arrays = ScriptArrays()
    if isinstance(exercise, Pull):
        wide = asks_for(exercise.model, "float64")
        body = _pull_lines(exercise, stage, place, arrays, blobs)
    elif isinstance(exercise, Update):
        wide = exercise.weights[0].dtype == np.float64
        body = _update_lines(exercise, stage, place, arrays)
    else:
        return None
    text = in_processes(
        finding.title,
        "keras and numpy",
        "KERAS_BACKEND",
        environments(shown, wide),
        (arrays.source(expected), source),
        [
            *("import keras", *first_in_process(shown.values()), *body[:-1]),
            *judging(body[-1], expected, stage.tolerance),
        ],
    )
    arrays.save(folder)
    return text


def _pull_lines(
    pull: Pull, stage: Stage, place: int, arrays: ScriptArrays, blobs: BlobStore
) -> list[str]:
    """The number that is differentiated, and last the line that computes `y`."""
    names = [f"x{n}" for n in range(len(pull.inputs))]
    if pull.model.layers:
        writer = CallWriter(Specimen(pull.model, pull.inputs), {}, blobs, arrays)
        lines, outputs = writer.body(every=True), f"call({', '.join(names)})"
        if pull.penalty:
            lines = [_whole(pull) if line.startswith("layer = ") else line for line in lines]
        several = [n for n, cotangent in enumerate(pull.cotangents) if cotangent is not None]
        tensors = {n: f"keras.ops.convert_to_tensor(c{n})" for n in several}
        parts = [f"keras.ops.sum({outputs}[{n}] * {tensors[n]})" for n in several]
        lines += [f"c{n} = {arrays.source(_array(pull.cotangents[n]))}" for n in several]
        layer = "layer"
    else:
        lines = [f"x0 = {arrays.source(pull.inputs[0])}"]
        parts, outputs, layer = [], "x0", ""
    if pull.loss is not None:
        lines.append(f"truth = {arrays.source(_array(pull.truth))}")
        weighed = ""
        if pull.sample_weight is not None:
            lines.append(f"weight = {arrays.source(pull.sample_weight)}")
            weighed = ", keras.ops.convert_to_tensor(weight)"
        parts.append(f"{_loss(pull.loss)}(truth, {outputs}{weighed})")
    if pull.penalty:
        parts = [f"({outputs}, sum({layer}.losses))[1]"]
    lines.append(f"number = lambda {', '.join(names)}: {' + '.join(parts)}")
    if stage.part == "value":
        feeds = ", ".join(f"keras.ops.convert_to_tensor({name})" for name in names)
        return [*lines, f"y = np.asarray(keras.ops.convert_to_numpy(number({feeds})))"]
    lines += _GRADIENTS.read_text(encoding="utf-8").splitlines()
    variables = f"{layer}.trainable_variables" if layer else "[]"
    what = next(iter(stage.told.values())).names[place]
    return [
        *lines,
        f"found = gradients(number, [{', '.join(names)}], {variables})",
        f"y = np.array(np.nan if found[{place}] is None else found[{place}])"
        f"  # the gradient of {what}",
    ]


def _whole(pull: Pull) -> str:
    """The layer with its regularisers, which change nothing about what it gives."""
    (layer,) = pull.model.layers
    module = layer.origin.get("module", "keras.layers")
    spec = {"module": module, "class_name": layer.kind, "config": dict(layer.config)}
    return f"layer = keras.layers.deserialize({literal(spec)})"


def _array(array: Array | None) -> Array:
    assert array is not None
    return array


def _loss(named: Named) -> str:
    return f"keras.losses.deserialize({literal(_serialised(named))})"


def _serialised(named: Named) -> dict[str, object]:
    module = {"module": named["module"]} if "module" in named else {}
    return {**module, "class_name": named["class_name"], "config": dict(named.get("config") or {})}


def _update_lines(update: Update, stage: Stage, place: int, arrays: ScriptArrays) -> list[str]:
    weights = ", ".join(arrays.source(array) for array in update.weights)
    steps = [", ".join(arrays.source(array) for array in row) for row in update.gradients]
    step, which = divmod(place, len(update.weights))
    found = f"w[{which}]"
    if step >= len(steps):  # what the optimiser remembers at the end
        name = next(iter(stage.told.values())).names[place]
        found = f"optimizer.variables[{name.split()[1]}]"
    lines = [
        f"w = [keras.Variable(a, dtype=a.dtype.name, name=f'w{{n}}')"
        f" for n, a in enumerate([{weights}])]",
        f"optimizer = keras.optimizers.deserialize({literal(_serialised(update.optimizer))})",
        "optimizer.build(w)",
    ]
    for number, constraint in enumerate(update.constraints):
        if constraint is not None:
            held = literal(dict(constraint))
            lines.append(f"w[{number}].constraint = keras.constraints.deserialize({held})")
    lines += ["def tensor(place, gradient):"]
    for number, rows in enumerate(update.rows):
        if rows is not None:
            lines += _rows_lines(number, arrays.source(rows))
    lines += ["    return keras.ops.convert_to_tensor(gradient)"]
    told = [f"    [{row}]," for row in steps[: step + 1]]
    return [
        *lines,
        "for gradients in [",
        *told,
        "]:",
        "    given = [tensor(place, g) for place, g in enumerate(gradients)]",
        *(_BY_VALUES if update.optimizer["class_name"] in _KNOW_VALUES else _APPLIED),
        f"y = np.array(keras.ops.convert_to_numpy({found}))",
    ]


_APPLIED = ("    optimizer.apply(given, w)",)
_KNOW_VALUES = frozenset({"LossScaleOptimizer"})  # with JAX they have no other way
_BY_VALUES = (
    '    if keras.backend.backend() == "jax":',
    "        before = [[v.value for v in some] for some in (optimizer.variables, w)]",
    "        learned, own = optimizer.stateless_apply(before[0], given, before[1])",
    "        for v, value in zip([*w, *optimizer.variables], [*learned, *own]): v.assign(value)",
    "    else: optimizer.apply(given, w)",
)


def _rows_lines(number: int, rows: str) -> list[str]:
    """Rows with their numbers on TensorFlow, as it hands them over itself; elsewhere their sum."""
    return [
        f"    if place == {number}:  # of some rows, as of an embedding",
        f"        rows = {rows}",
        '        if keras.backend.backend() == "tensorflow":',
        "            import tensorflow as tf; shape = tf.constant(list(w[place].shape))",
        "            return tf.IndexedSlices(tf.constant(gradient), tf.constant(rows), shape)",
        "        dense = np.zeros(w[place].shape, gradient.dtype)",
        "        np.add.at(dense, rows, gradient); gradient = dense",
    ]
