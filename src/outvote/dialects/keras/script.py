"""Writes repro.py: a short script that needs keras and numpy alone and proves a finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outvote.bench.bench import Bench
from outvote.core.blobs import BlobStore
from outvote.core.cuts import owned
from outvote.core.dtypes import asks_for
from outvote.core.model import REF, Layer
from outvote.core.source import filled, is_name, keywords, literal, one_line
from outvote.core.specimen import Specimen
from outvote.core.target import Target
from outvote.dialects.keras.initial import are_as_made
from outvote.dialects.keras.layers import INERT, INERT_ENDINGS, policy_name
from outvote.dialects.keras.nouns.devices import environment, on_gpu
from outvote.dialects.keras.nouns.twins import FILES
from outvote.dialects.keras.targets import REFERENCE, reading_order
from outvote.findings import versions as repro_versions
from outvote.findings.answer import right_answer, shown_one
from outvote.findings.finding import Finding, Proof
from outvote.judge.compare import Settings
from outvote.localize.isolated import Fault
from outvote.run.pool import Pool
from outvote.triage.plain import written
from outvote.triage.scripts import (
    ScriptArrays,
    at_a_glance,
    ending,
    first_in_process,
    in_processes,
    judging,
    started_by,
    table_of,
    transformations,
)

_TEMPLATES = Path(__file__).parent / "templates"
_TWINS = Path(__file__).parent / "workers" / "twins"
_FEW = 8  # numbers of a weight that are written as a plain list
MODES = {
    "graph": "import tensorflow as tf; call = tf.function(call)",
    "xla": "import tensorflow as tf; call = tf.function(call, jit_compile=True)",
    "jit": "import jax; call = jax.jit(call)",
    "compile": "import torch; call = torch.compile(call)",
    "predict": "i = [keras.Input(x.shape[1:], dtype=x.dtype.name) for x in [@INPUTS@]];"
    " m = keras.Model(i, call(*i)); call = lambda *x: m.predict([*x], verbose=0)",
}


# Keras would fold it all into a constant: give it to OpenVINO as a graph, as `predict` does.
_OPENVINO = """\
if keras.backend.backend() == "openvino" and os.environ.get("MODE") != "predict":
    import openvino as ov, openvino.opset15 as opset; from keras.src.backend.openvino import core
    given = [opset.parameter(list(x.shape), core.OPENVINO_DTYPES[x.dtype.name]) for x in [@INPUTS@]]
    node = call(*[core.OpenVINOKerasTensor(p.output(0)) for p in given]).output
    device = os.environ.get("DEVICE", "CPU")
    graph = ov.compile_model(ov.Model([node], given), device, {"INFERENCE_PRECISION_HINT": "f32"})
    y = np.array(graph([@INPUTS@])[0])
else:
    """
_OPENVINO_SHORT = """\
import openvino as ov, openvino.opset15 as opset; from keras.src.backend.openvino import core
given = [opset.parameter(list(x.shape), core.OPENVINO_DTYPES[x.dtype.name]) for x in [@INPUTS@]]
y = keras.tree.flatten(call(*[core.OpenVINOKerasTensor(p.output(0)) for p in given]))[0].output
graph = ov.compile_model(ov.Model([y], given), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
print(graph([@INPUTS@])[0])"""
_COMPUTE = (
    "y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [{}]))))"
)
# A stateful layer begins every call with zeros, as it did on the targets.
_FORGET = (
    "for part in {layer}._flatten_layers():"
    " [s.assign(s * 0) for s in keras.tree.flatten(getattr(part, 'states', None) or [])]"
)


def can_prove(finding: Finding, targets: Iterable[Target]) -> bool:
    """Whether plain Keras can show it: layers of its own, and no classic library."""
    proof = finding.proof
    return (
        proof is not None
        and all(_is_plain(layer) for layer in proof.specimen.model.layers)
        and all(target.worker in ("keras3", REFERENCE) for target in targets)
    )


def _is_plain(layer: Layer) -> bool:
    return _module(layer).startswith("keras.") and is_name(layer.kind)


def _module(layer: Layer) -> str:
    return str(layer.origin.get("module") or "")


def script(finding: Finding, targets: Mapping[str, Target], pool: Pool, folder: Path) -> str | None:
    """The text of repro.py; arrays too long to be written out go to arrays.npz beside it."""
    proof = finding.proof
    if proof is None or not can_prove(finding, targets.values()):
        return None
    defaults = _defaults(finding, proof, targets, pool)
    return written_out(finding, proof, targets, defaults, pool.blobs, folder)


def short(finding: Finding, targets: Mapping[str, Target], pool: Pool) -> str | None:
    """For one target of the library as it is: a setup script would need a file, a GPU its lines."""
    proof = finding.proof
    accused = targets.get(shown_one(finding, proof)) if proof else None
    if proof is None or accused is None or not can_prove(finding, [accused]):
        return None
    if accused.setup is not None or (accused.backend == "openvino" and accused.device):
        return None
    writer = CallWriter(proof.specimen, _defaults(finding, proof, targets, pool), pool.blobs)
    env = environment_of(accused, asks_for(proof.specimen.model, "float64"))
    told = "; ".join(
        f'os.environ["{key}"] = {literal(value)}'
        for key, value in env.items()
        if key not in ("MODE", "PYTHON", "PYTHONPATH")
    )
    lines = [f"import os; {told}", "import keras, numpy as np", *writer.body(judged=False)]
    inputs = ", ".join(writer.inputs)
    lines += MODES.get(accused.mode, "").replace("@INPUTS@", inputs).splitlines()
    graph = accused.backend == "openvino" and accused.mode != "predict"
    shown = _OPENVINO_SHORT if graph else "print(call(@INPUTS@))"
    lines += shown.replace("@INPUTS@", inputs).splitlines()
    return at_a_glance(lines, writer.arrays, finding, proof, accused)


def _defaults(
    finding: Finding, proof: Proof, targets: Mapping[str, Target], pool: Pool
) -> Mapping[str, Mapping[str, Any]]:
    """What layers need not be given, by a target that is not accused."""
    able = [target for target in targets.values() if target.worker != REFERENCE]
    order = sorted(able, key=lambda t: (t.name == finding.accused, reading_order(t)))
    return Bench(pool, targets, Settings()).defaults(proof.specimen, order[0].name)


def written_out(
    finding: Finding,
    proof: Proof,
    targets: Mapping[str, Target],
    defaults: Mapping[str, Mapping[str, Any]],
    blobs: BlobStore,
    folder: Path,
) -> str:
    """The proof as a script; `defaults` are what its layers need not be given."""
    shown = _shown(finding, proof, targets)
    writer = CallWriter(proof.specimen, defaults, blobs)
    expected, source = right_answer(finding, proof)
    modes = sorted({t.mode for t in shown.values()} & set(MODES))
    inputs = ", ".join(writer.inputs)
    lines = [f'if mode == "{mode}": {MODES[mode]}'.replace("@INPUTS@", inputs) for mode in modes]
    if lines:
        lines.insert(0, 'mode = os.environ.get("MODE")')
    first = [*ending(finding), "import keras", *first_in_process(shown.values())]
    body = [*first, *writer.body(), *lines]
    compute = _COMPUTE.format(inputs) + '.astype("float32")' * _ends_in_bfloat16(proof)
    if any(t.backend == "openvino" and t.mode != "predict" for t in shown.values()):
        compute = _OPENVINO.replace("@INPUTS@", inputs) + compute
    text = in_processes(
        finding.title,
        "keras and numpy",
        "KERAS_BACKEND",
        environments(shown, asks_for(proof.specimen.model, "float64")),
        (writer.arrays.source(expected) if expected is not None else "None", source),
        [*body, *judging(compute, expected, proof.observed.tolerance)],
    )
    writer.arrays.save(folder)
    return text


def script_of_file(fault: Fault, targets: Mapping[str, Target], folder: Path) -> str:
    """A script that runs the model file in the folder on the targets that took part."""
    title = one_line(f"{fault.layer.kind} layer {fault.layer.name!r}")
    shown = [t for t in targets.values() if t.name in (*fault.outputs, *fault.failures)]
    if repro_versions.has_versions(shown):
        (folder / "outvote.toml").write_text(repro_versions.config(shown), encoding="utf-8")
        return repro_versions.script(title, shown)
    targets = {t.name: t for t in shown}
    told = {
        name: {**environment_of(target, wide=False), "MODE": target.mode}
        for name, target in targets.items()
    }
    twins = {t.twin: _TWINS / f"{FILES[t.twin]}.py" for t in shown if t.worker == "twin"}
    expected = fault.vote.majority or ()
    return filled(
        _TEMPLATES / "repro.py.txt",
        {
            "TITLE": title,
            "TARGETS": literal(told),
            "MAJORITY": literal(list(expected)),
            "TOLERANCE": literal(float(fault.tolerance)),
            "TWINS": "\n".join(transformations(twins)),
        },
    )


def layer_code(layer: Layer, defaults: Mapping[str, Any]) -> str:
    """The layer as someone would type it: required parameters, and others than the default."""
    if not _module(layer).startswith("keras.layers"):  # an operation, as `h + h` makes one
        names = {"class_name": layer.kind, "registered_name": layer.origin.get("registered")}
        spec = {"module": _module(layer), **names, "config": dict(layer.config)}
        return f"keras.saving.deserialize_keras_object({literal(spec)})"
    return _constructed(layer.kind, layer.config, defaults)


def _shown(finding: Finding, proof: Proof, targets: Mapping[str, Target]) -> dict[str, Target]:
    """Those who took part; OpenVINO needs many lines, so it is shown if the finding is about it."""
    names = [*proof.observed.outputs, *proof.observed.failures]
    able = {name: target for name, target in targets.items() if target.worker != REFERENCE}
    known = {name: able[name] for name in names if name in able}
    about = (*finding.targets, finding.accused)
    few = {n: t for n, t in known.items() if t.backend != "openvino" or n in about}
    return few if len(few) > 1 else known


def _ends_in_bfloat16(proof: Proof) -> bool:
    """NumPy has no such type: the numbers are compared as float32, which holds them exactly."""
    return any("bfloat16" in found.dtypes for found in proof.observed.outputs.values())


def environments(targets: Mapping[str, Target], wide: bool) -> str:
    found = {name: environment_of(target, wide) for name, target in targets.items()}
    if any(on_gpu(target.backend, target.mode) for target in targets.values()):
        for name, target in targets.items():
            found[name] |= environment(target.backend, target.mode)
    more = {"JAX_ENABLE_X64": "1"} if wide and "jax" in found else {}  # means nothing to others
    if all({**env, **more} == {"KERAS_BACKEND": name, **more} for name, env in found.items()):
        added = "".join(f', "{key}": "{value}"' for key, value in more.items())
        return f'{{name: {{"KERAS_BACKEND": name{added}}} for name in {tuple(found)!r}}}'
    return table_of(found)


def environment_of(target: Target, wide: bool) -> dict[str, str]:
    env = {"KERAS_BACKEND": target.backend, **target.env}
    if target.mode in MODES:
        env["MODE"] = target.mode
    if target.worker == "twin":
        env["TWIN"] = target.mode
    if target.backend == "openvino" and target.device:
        env["DEVICE"] = "GPU"
    if target.mode == "no-onednn":
        env["TF_ENABLE_ONEDNN_OPTS"] = "0"
    if target.backend == "jax" and wide:
        env["JAX_ENABLE_X64"] = "1"
    return {**env, **started_by(target)}


class CallWriter:
    """The lines that build and call the model of a specimen.

    Names come from a file that nobody vouches for: tensors, layers and arrays are numbered.
    """

    def __init__(
        self,
        specimen: Specimen,
        defaults: Mapping[str, Mapping[str, Any]],
        blobs: BlobStore,
        arrays: ScriptArrays | None = None,
    ) -> None:
        self._specimen = specimen
        self._defaults = defaults
        self._blobs = blobs
        self.inputs = [f"x{i}" for i in range(len(specimen.inputs))]
        self.arrays = arrays or ScriptArrays()

    def body(self, judged: bool = True, every: bool = False) -> list[str]:
        """The lines; `every`: all that the model gives as a list, not its first output."""
        model = self._specimen.model
        layers = owned(model.layers)  # the first call of a shared one may have been cut off
        lines = [
            f"{name} = {self.arrays.source(array)}"
            for name, array in zip(self.inputs, self._specimen.inputs, strict=True)
        ]
        objects: dict[str, str] = {}
        for number, layer in enumerate(layers):
            if layer.shares is not None:
                objects[layer.name] = objects[layer.shares]
                continue
            objects[layer.name] = f"layer{number}" if len(layers) > 1 else "layer"
            code = layer_code(layer, self._defaults.get(layer.name, {}))
            lines.append(f"{objects[layer.name]} = {code}")
        tensors = {item.name: name for item, name in zip(model.inputs, self.inputs, strict=True)}
        steps = []
        for number, layer in enumerate(layers):
            steps.append((f"y{number}", f"{objects[layer.name]}({_arguments(layer, tensors)})"))
            tensors[layer.name] = f"y{number}"
        *before, (_, end) = steps
        if every:
            end = f"keras.tree.flatten({end})"
        elif judged or model.outputs[0].index:
            end = f"keras.tree.flatten({end})[{model.outputs[0].index}]"
        if before:
            lines += [f"def call({', '.join(self.inputs)}):"]
            lines += [f"    {name} = {code}" for name, code in before]
            lines += [f"    return {end}"]
        else:
            lines += [f"call = lambda {', '.join(self.inputs)}: {end}"]
        return lines + self._weights(layers, objects)

    def _weights(self, layers: Sequence[Layer], objects: Mapping[str, str]) -> list[str]:
        found = []
        stateful = []
        for layer in layers:
            if not layer.weights or layer.shares is not None:
                continue
            made = objects[layer.name]
            arrays = [np.asarray(self._blobs.get(w.digest)) for w in layer.weights]
            if are_as_made(layer, arrays) and not _is_stateful(layer.config):
                continue
            texts = [
                f'np.array({written(array)}, "{array.dtype}")'
                if array.size <= _FEW
                else self.arrays.source(array)
                for array in arrays
            ]
            found.append(f"{made}.set_weights([{', '.join(texts)}])")
            if _is_stateful(layer.config):
                stateful.append(_FORGET.format(layer=made))
        created = f"call({', '.join(self.inputs)})  # creates the weights"
        return [created, *found, *stateful] if found else []


def _is_stateful(config: Any) -> bool:
    if isinstance(config, Mapping):
        return config.get("stateful") is True or any(map(_is_stateful, config.values()))
    return isinstance(config, list | tuple) and any(map(_is_stateful, config))


def _arguments(layer: Layer, tensors: Mapping[str, str]) -> str:
    first = [_argument(item, tensors) for item in layer.args]
    given = {key: value for key, value in layer.kwargs.items() if value is not None}
    named = keywords({key: _argument(value, tensors) for key, value in given.items()})
    return ", ".join([*first, *named])


def _argument(value: Any, tensors: Mapping[str, str]) -> str:
    if isinstance(value, Mapping):
        if REF in value:
            producer, index = value[REF]
            name = tensors[producer]
            return name if index == 0 else f"keras.tree.flatten({name})[{index}]"
        if "$tuple" in value:
            return f"({', '.join(_argument(v, tensors) for v in value['$tuple'])},)"
        if "$object" in value:
            return f"keras.saving.deserialize_keras_object({literal(value['$object'])})"
        inner = ", ".join(f"{literal(k)}: {_argument(v, tensors)}" for k, v in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_argument(v, tensors) for v in value)}]"
    return literal(value)


def _constructed(kind: str, config: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    told = {
        key: _value(value)
        for key, value in config.items()
        if key not in INERT
        and not key.endswith(INERT_ENDINGS)
        and not (key in defaults and defaults[key] == value)
        and not (not defaults and value is None)
    }
    dtype = policy_name(config.get("dtype"))
    if dtype not in (None, "float32"):
        told["dtype"] = literal(dtype)
    return f"keras.layers.{kind}({', '.join(keywords(told))})"


def _value(value: Any) -> str:
    if isinstance(value, Mapping) and "class_name" in value:
        plain = is_name(str(value["class_name"])) and isinstance(value.get("config"), Mapping)
        if plain and str(value.get("module", "")).startswith("keras.layers"):
            return _constructed(value["class_name"], value["config"], {})
        return f"keras.saving.deserialize_keras_object({literal(value)})"
    if isinstance(value, list | tuple):
        inner = [_value(item) for item in value]
        return f"({', '.join(inner)}{',' * (len(inner) == 1)})"
    return literal(value)
