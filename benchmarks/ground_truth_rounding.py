"""Random deep models on released libraries, part of ground_truth.py: is rounding called a bug?

Layers, parameters and weights are drawn, and what differs is looked into, as a campaign does it.
Each `bug` is held against the same case computed in float64 on every target.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ground_truth_bench import BACKENDS, open_pool
from outvote.campaign.investigate import Investigator
from outvote.campaign.oracle import judge
from outvote.campaign.runner import ModelRun, Runner
from outvote.campaign.seeds import Seed
from outvote.core.arrays import Array
from outvote.core.model import Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.protocol import RunModel
from outvote.core.specimen import Specimen
from outvote.core.truth import Truth
from outvote.dialects.keras.mutate.chains import Chain
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.targets import BUILT_IN
from outvote.findings.finding import Finding
from outvote.judge.compare import Settings, distance
from outvote.mutate.registry import Impossible
from outvote.run.pool import Pool
from small_cases import SHAPES, made_tools, seed_of

_LAYERS = (10, 40)
SETTINGS = Settings(metrics=("mad", "relative"))
_SAME = 1e-9  # float64 results that agree to this are the truth for float32 and float16
_NARROW = 1e-6  # as far as float32 inside a layer leads float64 results apart
_PLAIN = 100.0  # times that spread: another result, not another rounding
_FARTHER = 4.0  # times as far from the truth as the best target: more than rounding's luck


@dataclass
class Tally:
    """Counted over all models."""

    models: int = 0
    layers: int = 0
    apart: int = 0
    rounding: int = 0
    verdicts: Counter[str] | None = None
    unsupported: int = 0


def run_rounding(count: int, first: int = 1) -> None:
    """Look into `count` models, float32 and float16 in turn; print the bugs, and which are none.

    Models are drawn by number, from `first` on.
    """
    tally = Tally(verdicts=Counter())
    began = time.monotonic()
    with open_pool() as pool:
        pool.start(BACKENDS)
        tools = made_tools(pool, "torch")
        runner = Runner(pool, BACKENDS, keep=True)
        targets = [BUILT_IN[name] for name in BACKENDS]
        investigator = Investigator(runner, targets, SETTINGS, seconds=5.0)
        number = first - 1
        while tally.models < count:
            number += 1
            dtype = ("float32", "float16")[number % 2]
            seed = seed_of(pool, SHAPES[number % len(SHAPES)])
            model = deep_model(seed, tools, number)
            if model is None:
                continue
            where = f"model {number}, {dtype}"
            typed = cast(pool, seed, dtype)
            if not look(tally, runner, investigator, typed, as_dtype(model, dtype), where):
                continue
            runner.recycle(3 << 30)
            if tally.models % 10 == 0:
                rate = (time.monotonic() - began) / tally.models
                left = rate * (count - tally.models) / 60
                print(f"{tally.models} models, {left:.0f} min left", flush=True)
    assert tally.verdicts is not None
    seconds = time.monotonic() - began
    print(
        f"\n{tally.models} random models with {tally.layers} layers, float32 and float16, "
        f"{seconds:.0f} s; {tally.apart} differ somewhere, {tally.rounding} of them by rounding "
        f"alone; findings by verdict: {dict(tally.verdicts)}; "
        f"bugs that a float64 computation does not support: {tally.unsupported}"
    )


def look(
    tally: Tally, runner: Runner, investigator: Investigator, seed: Seed, model: Model, where: str
) -> bool:
    """Run one model and look into it as a campaign does; False where no target runs it."""
    trial = ModelRun(seed, model, [layer.name for layer in model.layers[1:]])
    judged = judge(runner.run([trial])[0], trial.watch, Truth(), SETTINGS)
    if not judged.valid:
        return False
    tally.models += 1
    tally.layers += len(model.layers)
    if judged.suspicious:
        report = investigator.look(seed, model, judged)
        tally.apart += 1
        tally.rounding += not report.findings and not report.again
        note(tally, runner.pool, report.findings, where)
    return True


def cast(pool: Pool, seed: Seed, dtype: str) -> Seed:
    """The seed with its inputs in another type of float."""
    arrays = tuple(array.astype(dtype) for array in seed.case.data.inputs)
    case = replace(
        seed.case,
        model=as_dtype(seed.case.model, dtype),
        data=replace(seed.case.data, inputs=arrays),
    )
    digests = tuple(pool.blobs.pin(pool.blobs.put(array)) for array in arrays)
    return replace(seed, name=f"{seed.name} {dtype}", case=case, inputs=digests)


def note(tally: Tally, pool: Pool, findings: Iterable[Finding], where: str) -> None:
    assert tally.verdicts is not None
    for finding in findings:
        tally.verdicts[finding.triage] += 1
        if finding.triage != "bug":
            continue
        supported, why = support(pool, finding)
        tally.unsupported += not supported
        mark = "supported" if supported else "NOT SUPPORTED"
        print(f"{where}: {mark} ({why}): {finding.title}", flush=True)


def deep_model(seed: Seed, tools: KerasTools, number: int) -> Model | None:
    """Layers one behind the other, each leading back to the shape before it where it must."""
    rng = np.random.default_rng(number)
    chain = Chain(seed.subject, Ref("start"), tools, rng)
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
    return replace(chain.inserted().model, outputs=(chain.end,))


def as_dtype(model: Model, dtype: str) -> Model:
    """The same model in another type of float; weights are cast when they are assigned."""
    if dtype == "float32":
        return model
    text = json.dumps(model.to_json()).replace('"float32"', f'"{dtype}"')
    changed = Model.from_json(json.loads(text))
    fed = tuple(replace(item, dtype=item.dtype.replace("float32", dtype)) for item in model.inputs)
    return replace(changed, inputs=fed)


def support(pool: Pool, finding: Finding) -> tuple[bool, str]:
    """Whether float64 says that the accused is wrong, and why."""
    if finding.kind in ("crash", "hang", "shape"):
        return True, f"a {finding.kind} is no rounding"
    if finding.proof is None or finding.accused is None:
        return False, "no case to compute in float64"
    seen, accused = finding.proof.observed, finding.accused
    right = seen.vote.majority or [n for n in seen.outputs if n not in finding.targets]
    if accused in right:  # the verdict says that the majority is wrong
        right = [name for name in seen.outputs if name not in right]
    wide = wide_outputs(pool, finding.proof.specimen)
    called = [name for name in right if name in wide]
    if not called:
        return False, "nobody who is called right computes it in float64"
    # Some layers compute in float32 inside, whatever type they are asked for. Whoever gives other
    # digits than before has computed wider.
    wider = [name for name in called if error_of(seen.outputs[name], wide[name]) > 0]
    others = [wide[name] for name in wider or called]
    truth = others[0]
    spread = max([apart(truth, other) for other in others[1:]], default=0.0)
    if not spread < _NARROW:
        return False, "those who are called right differ in float64 too"
    if accused in wide and not apart(truth, wide[accused]) < max(_SAME, _PLAIN * spread):
        return True, "the accused differs in float64 too"
    errors = {name: error_of(outputs, truth) for name, outputs in seen.outputs.items()}
    best = min(errors[name] for name in right if name in errors)
    own = errors[accused]
    told = f"accused {own:.1e} from float64, best {best:.1e}"
    return bool(not own <= max(_FARTHER * best, seen.tolerance)), told


def wide_outputs(pool: Pool, specimen: Specimen) -> dict[str, Outputs]:
    """The finding's smallest case in float64, by target."""
    text = json.dumps(specimen.model.to_json())
    for narrow in ("float16", "float32"):
        text = text.replace(f'"{narrow}"', '"float64"')
    digests = tuple(pool.blobs.put(_wide(array)) for array in specimen.inputs)
    model = Model.from_json(json.loads(text))
    request = RunModel(model=model, inputs=digests, batch=specimen.count, exact=True)
    runs = pool.ask_all(list(BACKENDS), request)
    found = {name: run.reply.outputs for name, run in runs.items() if run.ok}
    # NumPy's backend gives float32 for some layers, whatever it is asked for.
    return {name: o for name, o in found.items() if all(a.dtype != "float32" for a in o.arrays)}


def apart(a: Outputs, b: Outputs) -> float:
    """The distance; NaN in the same places is none."""
    if a.dtypes != b.dtypes or any(
        x.shape != y.shape or not np.array_equal(np.isnan(x), np.isnan(y))
        for x, y in zip(a.arrays, b.arrays, strict=True)
    ):
        return np.inf
    plain = (replace(o, arrays=tuple(map(np.nan_to_num, o.arrays))) for o in (a, b))
    return distance(*plain)


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def error_of(outputs: Outputs, truth: Outputs) -> float:
    """Distance to the truth, whatever type it was computed in."""
    return apart(Outputs(outputs.arrays, truth.dtypes), truth)
