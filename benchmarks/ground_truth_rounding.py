"""Random deep models on released libraries, part of ground_truth.py: is rounding called a bug?

Layers, parameters and weights are drawn like a campaign draws them. Each `bug` is held against the
same layer computed in float64 on every target.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ground_truth_bench import BACKENDS, LIMITS, open_pool
from outvote.checking import Job, check_in
from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.model import Model, Ref
from outvote.core.one_layer import one_layer
from outvote.findings import Finding
from outvote.judge.compare import Outputs
from outvote.localize.isolated import distance
from outvote.mutate.chains import Chain, Impossible
from outvote.mutate.tools import Tools
from outvote.run.pool import Pool, Request
from outvote.targets import BUILT_IN
from small_cases import SHAPES, made_tools, seed_of

_LAYERS = (10, 40)
_SAME = 1e-9  # float64 results that agree to this are the truth for float32 and float16
_FARTHER = 4.0  # times as far from the truth as the best target: more than rounding's luck


@dataclass
class Tally:
    """Counted over all models."""

    models: int = 0
    layers: int = 0
    verdicts: Counter[str] | None = None
    unsupported: int = 0


def run_rounding(count: int, out: Path) -> None:
    """Check `count` models, float32 and float16 in turn; print the bugs, and which are none."""
    targets = tuple(BUILT_IN[name] for name in BACKENDS)
    tally = Tally(verdicts=Counter())
    began = time.monotonic()
    with open_pool() as pool:
        pool.start(BACKENDS)
        tools = made_tools(pool, "torch")
        number = 0
        while tally.models < count:
            number += 1
            dtype = ("float32", "float16")[tally.models % 2]
            model = deep_model(pool, tools, number, dtype)
            if model is None:
                continue
            path = saved(pool, model, out / f"{number}.keras")
            if path is None:
                continue
            try:
                job = Job(path, targets, count=4, seed=number, limits=LIMITS)
                findings = check_in(pool, job).findings
            except UsageError as error:  # a model that no target runs tests nothing
                print(f"{number} {dtype}: {str(error)[:150]}", flush=True)
                continue
            tally.models += 1
            tally.layers += len(model.layers)
            note(tally, pool, findings, f"model {number}, {dtype}")
            if tally.models % 10 == 0:
                rate = (time.monotonic() - began) / tally.models
                left = rate * (count - tally.models) / 60
                print(f"{tally.models} models, {left:.0f} min left", flush=True)
    assert tally.verdicts is not None
    seconds = time.monotonic() - began
    print(
        f"\n{tally.models} random models with {tally.layers} layers, float32 and float16, "
        f"{seconds:.0f} s; findings by verdict: {dict(tally.verdicts)}; "
        f"bugs that a float64 computation does not support: {tally.unsupported}"
    )


def note(tally: Tally, pool: Pool, findings: list[Finding], where: str) -> None:
    assert tally.verdicts is not None
    for finding in findings:
        tally.verdicts[finding.triage] += 1
        if finding.triage != "bug":
            continue
        supported, why = support(pool, finding)
        tally.unsupported += not supported
        mark = "supported" if supported else "NOT SUPPORTED"
        print(f"{where}: {mark} ({why}): {finding.title}", flush=True)


def deep_model(pool: Pool, tools: Tools, number: int, dtype: str) -> Model | None:
    """Layers one behind the other, each leading back to the shape before it where it must."""
    rng = np.random.default_rng(number)
    place = SHAPES[number % len(SHAPES)]
    chain = Chain(seed_of(pool, place).subject, Ref("start"), tools, rng)
    wanted = int(rng.integers(*_LAYERS))
    try:
        while len(chain.layers) < wanted:
            rank = len(chain.spec.place)
            keep = bool(rng.random() < 0.7)
            kinds = tools.catalogue.fitting(rank)
            chain.draw(kinds, keep)
            if not chain.spec.is_float or chain.spec.size is None or chain.spec.size < 4:
                return None
    except Impossible:
        return None
    model = replace(chain.inserted().model, outputs=(chain.end,))
    return as_dtype(model, dtype)


def as_dtype(model: Model, dtype: str) -> Model:
    """The same model in another type of float; weights are cast when they are assigned."""
    if dtype == "float32":
        return model
    text = json.dumps(model.to_json()).replace('"float32"', f'"{dtype}"')
    changed = Model.from_json(json.loads(text))
    fed = tuple(replace(item, dtype=item.dtype.replace("float32", dtype)) for item in model.inputs)
    return replace(changed, inputs=fed)


def saved(pool: Pool, model: Model, path: Path) -> Path | None:
    """Written as a file, as a user's model is; None where Keras cannot."""
    run = pool.ask("torch", Request("save", {"model": model.to_json(), "path": str(path)}))
    if not run.ok:
        print(f"{path.name} is left out: {run.message[:150]}", flush=True)
    return path if run.ok else None


def support(pool: Pool, finding: Finding) -> tuple[bool, str]:
    """Whether float64 says that the accused is wrong, and why."""
    fault, accused = finding.fault, finding.accused
    if finding.kind in ("crash", "hang", "shape"):
        return True, f"a {finding.kind} is no rounding"
    if fault is None or accused is None or not fault.given or accused not in fault.outputs:
        return False, "no single layer to compute in float64"
    wide = wide_outputs(pool, finding)
    others = [wide[name] for name in fault.vote.majority if name in wide]
    if not others:
        return False, "no target of the majority computes it in float64"
    truth = others[0]
    if any(not distance(truth, other) < _SAME for other in others[1:]):
        return False, "the majority differs in float64 too"
    if accused in wide and not distance(truth, wide[accused]) < _SAME:
        return True, "the accused differs in float64 too"
    errors = {name: error_of(outputs, truth) for name, outputs in fault.outputs.items()}
    best = min(errors[name] for name in fault.vote.majority if name in errors)
    own = errors[accused]
    told = f"accused {own:.1e} from float64, best {best:.1e}"
    return bool(not own <= max(_FARTHER * best, fault.tolerance)), told


def wide_outputs(pool: Pool, finding: Finding) -> dict[str, Outputs]:
    """The finding's layer in float64, on the tensors it was given, by target."""
    assert finding.fault is not None
    model, arrays = one_layer(finding.fault.layer, finding.fault.given)
    text = json.dumps(model.to_json())
    for narrow in ("float16", "float32"):
        text = text.replace(f'"{narrow}"', '"float64"')
    digests = [pool.blobs.put(_wide(array)) for array in arrays]
    arguments: dict[str, Any] = {
        "model": json.loads(text),
        "inputs": digests,
        "batch": len(arrays[0]),
    }
    runs = pool.ask_all(list(BACKENDS), Request("run", arguments))
    return {
        name: Outputs(run.arrays, tuple(run.reply["dtypes"]))
        for name, run in runs.items()
        if run.ok
    }


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def error_of(outputs: Outputs, truth: Outputs) -> float:
    """Distance to the truth, whatever type it was computed in."""
    return distance(Outputs(outputs.arrays, truth.dtypes), truth)
