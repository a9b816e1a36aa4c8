"""Writes repro.py of a relation that a target breaks: one way to a result, and the other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from outvote.bench.bench import Bench
from outvote.core.source import literal, one_line
from outvote.core.target import Target
from outvote.dialects.keras.script import MODES, CallWriter, can_prove, environment_of
from outvote.dialects.keras.targets import reading_order
from outvote.findings.finding import Finding, Proof
from outvote.judge.compare import Settings
from outvote.relations.compiled import sibling
from outvote.run.pool import Pool
from outvote.triage.scripts import first_in_process

_RUN = "run = lambda *x: np.asarray(keras.ops.convert_to_numpy(call(*x)))"
_REMADE = (
    "weights = layer.get_weights()\n"
    "layer = type(layer).from_config({CONFIG}); run(@GIVEN@); layer.set_weights(weights)"
)
_SAVED = (
    'import tempfile; path = tempfile.mkdtemp() + "/m.keras"\n'
    "keras.Sequential([keras.Input(x0.shape[1:], dtype=x0.dtype.name), layer]).save(path)\n"
    "layer = keras.saving.load_model(path)"
)
_OTHER_FORMAT = (
    'other = {"channels_last": "channels_first"}.get(layer.data_format, "channels_last")\n'
    'ends = (-1, 1) if other == "channels_first" else (1, -1)\n'
    "turned = lambda x: np.moveaxis(x, *ends) if x.ndim > 2 else x"
)
_MASKED = (
    "away = float(np.ceil(max(np.abs(x).max() for x in [@INPUTS@]))) + 1\n"
    "longer = lambda x: keras.layers.Masking(away)(keras.ops.convert_to_tensor(\n"
    "    np.pad(x, [(0, 0), (0, 2), (0, 0)], constant_values=away)))"
)


def _remade(changes: str, given: str = "@INPUTS@") -> str:
    config = f"{{**layer.get_config(), {changes}}}" if changes else "layer.get_config()"
    return _REMADE.replace("{CONFIG}", config).replace("@GIVEN@", given)


# What is run, by relation; `expected` and `given` must be equal. @INPUTS@ are the names of the
# inputs, @EACH x …@ the same with something done to each.
_WAYS: Mapping[str, tuple[str, ...]] = {
    "alone": ("expected, given = run(@INPUTS@)[-1:], run(@EACH x[-1:]@)",),
    "order": ("expected, given = run(@INPUTS@)[::-1], run(@EACH x[::-1]@)",),
    "linear": (
        "expected = run(@INPUTS@) + run(@EACH np.roll(x, -1, 0)@) - run(@EACH 0 * x@)",
        "given = run(@EACH x + np.roll(x, -1, 0)@)",
    ),
    "idle": ("expected, given = x0, run(x0)",),
    "wider": (
        'wide = lambda x: x.astype("float64") if x.dtype.kind == "f" else x',
        "given = run(@INPUTS@)",
        _remade('"dtype": "float64"', "@EACH wide(x)@"),
        "expected = run(@EACH wide(x)@)",
    ),
    "channels": (
        _OTHER_FORMAT,
        "expected = turned(run(x0))",
        _remade('"data_format": other', "turned(x0)"),
        "given = run(turned(x0))",
    ),
    "padding": (
        _MASKED,
        "expected, given = run(@INPUTS@), run(@EACH longer(x)@)",
        "given = given[:, :expected.shape[1]] if expected.ndim == 3 else given",
    ),
    "compiled": ("expected = run(@INPUTS@)", "@MODE@", "given = run(@INPUTS@)"),
    "config": ("expected = run(@INPUTS@)", _remade(""), "given = run(@INPUTS@)"),
    "saved": ("expected = run(x0)", _SAVED, "given = run(x0)"),
}
_OF_ONE_LAYER = frozenset({"wider", "channels", "padding", "config", "saved"})
_OF_ONE_INPUT = frozenset({"channels", "idle", "saved"})
_JUDGE = """\
right = expected.shape == given.shape and np.allclose(
    given, expected, rtol=0, atol=@TOLERANCE@ * np.abs(expected).max(initial=0), equal_nan=True)
told = "ok:" if right else "WRONG:"
sys.exit(print(told, given.ravel()[:6], "must be", expected.ravel()[:6]) or not right)"""


def relation_script(
    finding: Finding, targets: Mapping[str, Target], pool: Pool, folder: Path
) -> str | None:
    """The text; None where plain Keras cannot show it: OpenVINO wants graphs, a file its model."""
    proof, target = finding.proof, targets[finding.accused or ""]
    if proof is None or not can_prove(finding, [target]) or target.backend == "openvino":
        return None
    specimen = proof.specimen
    layers, inputs = len(specimen.model.layers), len(specimen.inputs)
    if (layers > 1 and finding.relation in _OF_ONE_LAYER) or (
        inputs > 1 and finding.relation in _OF_ONE_INPUT
    ):
        return None
    writer = CallWriter(specimen, _defaults(proof, targets, target, pool), pool.blobs)
    env = environment_of(target, wide=finding.relation == "wider")
    env.pop("PYTHON", None)
    env.pop("MODE", None)
    text = "\n".join(
        [
            f'"""{one_line(finding.title)}',
            'Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""',
            f"import os, runpy, sys; os.environ |= {literal(env)}",
            "import keras, numpy as np",
            *first_in_process([target]),
            *writer.body(),
            _RUN,
            *_WAYS[finding.relation],
            _JUDGE.replace("@TOLERANCE@", f"{max(proof.observed.tolerance, 1e-12):.2g}"),
        ]
    )
    if target.setup is None:
        text = text.replace("import os, runpy, sys", "import os, sys")
    text = _filled(text, writer.inputs, target)
    writer.arrays.save(folder)
    return text + "\n"


def _filled(text: str, inputs: list[str], target: Target) -> str:
    compiled = sibling(target)
    mode = MODES[compiled.mode] if compiled is not None and compiled.mode in MODES else ""
    text = text.replace("@MODE@", mode).replace("@INPUTS@", ", ".join(inputs))
    while "@EACH " in text:
        before, _, rest = text.partition("@EACH ")
        done, _, after = rest.partition("@")
        if len(inputs) == 1:
            each = _named(done, inputs[0])
        else:
            each = f"*({done} for x in [{', '.join(inputs)}])"
        text = f"{before}{each}{after}"
    return text


def _named(done: str, name: str) -> str:
    """What is done to `x`, to that input."""
    return re.sub(r"\bx\b", name, done)


def _defaults(
    proof: Proof, targets: Mapping[str, Target], target: Target, pool: Pool
) -> Mapping[str, Mapping[str, object]]:
    """What layers need not be given, by a target that can say so."""
    able = [t for t in targets.values() if t.can("make")] or [target]
    name = min(able, key=reading_order).name
    return Bench(pool, targets, Settings()).defaults(proof.specimen, name)
