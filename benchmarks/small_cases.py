"""Small cases: random models of five layers, each run on two targets in processes of their own.

    python benchmarks/small_cases.py [--cases 2000] [--targets numpy,torch]

Every case is a new model: five layers drawn from the whole catalogue, with new weights. All its
layers are compared.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from outvote.campaign.oracle import judge
from outvote.campaign.runner import ModelRun, Runner
from outvote.campaign.seeds import Seed
from outvote.core.case import Case, Data
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.core.protocol import ListKinds
from outvote.core.truth import Truth
from outvote.dialects.keras.mutate.catalogue import Catalogue
from outvote.dialects.keras.mutate.chains import Chain
from outvote.dialects.keras.mutate.maker import Maker
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.targets import BUILT_IN
from outvote.judge.compare import Settings
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Spec, Subject
from outvote.run.local import LocalPool
from outvote.run.pool import Pool, asker
from outvote.targets.choose import choose

LAYERS = 5
BATCH = 32
SHAPES = ((6, 5, 3), (7, 4), (9,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--targets", default="numpy,torch")
    options = parser.parse_args()
    targets = choose(options.targets.split(","), BUILT_IN)
    names = [target.name for target in targets]
    with LocalPool(targets) as pool:
        pool.start()
        tools = made_tools(pool, names[-1])
        seeds = [seed_of(pool, place) for place in SHAPES]
        runner = Runner(pool, names)
        measure(runner, tools, seeds, options.cases, names)


def made_tools(pool: Pool, name: str) -> KerasTools:
    catalogue = Catalogue.of(pool.ask(name, ListKinds()).reply)
    return KerasTools(pool.blobs, Maker(asker(pool, name), pool.blobs), catalogue)


def seed_of(pool: Pool, place: tuple[int, ...]) -> Seed:
    """An identity, and two inputs for it."""
    layer = Layer(
        "start",
        "Identity",
        {"name": "start"},
        args=[{REF: ["x", 0]}],
        origin={"module": "keras.layers"},
    )
    inputs = (Input("x", (None, *place), "float32"),)
    model = Model("small", inputs, (layer,), (Ref("start"),), "keras")
    data = np.random.default_rng(0).normal(size=(2, *place)).astype("float32")
    case = Case(model, [(None, *place)], Data((data,), None, "random", (0,)), Truth())
    spec = (Spec((None, *place), "float32"),)
    subject = Subject(model, {"x": spec, "start": spec})
    return Seed("small", case, subject, (pool.blobs.pin(pool.blobs.put(data)),))


def small_case(seed: Seed, tools: KerasTools, number: int) -> Model | None:
    """Five layers, one behind the other, whatever shapes they make."""
    chain = Chain(seed.subject, Ref("start"), tools, np.random.default_rng(number))
    try:
        for _ in range(LAYERS):
            spec = chain.spec
            kinds = tools.catalogue.fitting(len(spec.place)) if spec.is_float else []
            if not kinds or spec.size is None:
                break
            chain.draw(kinds, keep=False)
    except Impossible:
        return None
    if not chain.layers:
        return None
    return replace(chain.inserted().model, outputs=(chain.end,))


def batch_of(seeds: list[Seed], tools: KerasTools, start: int) -> list[ModelRun]:
    """As many cases as are run together; numbers from `start` on seed them."""
    trials: list[ModelRun] = []
    number = start
    while len(trials) < BATCH:
        number += 1
        seed = seeds[number % len(seeds)]
        model = small_case(seed, tools, number)
        if model is not None:
            trials.append(ModelRun(seed, model, [layer.name for layer in model.layers[1:]]))
    return trials


def measure(
    runner: Runner, tools: KerasTools, seeds: list[Seed], cases: int, names: list[str]
) -> None:
    outcomes: Counter[str] = Counter()
    kinds: set[str] = set()
    began, done = time.monotonic(), 0
    with ThreadPoolExecutor(1) as ahead:  # the next cases are made while these run
        coming = ahead.submit(batch_of, seeds, tools, 0)
        while done < cases:
            trials = coming.result()
            done += len(trials)
            coming = ahead.submit(batch_of, seeds, tools, 1000 * done)
            for trial, runs in zip(trials, runner.run(trials), strict=True):
                judged = judge(runs, trial.watch, Truth(), Settings(metrics=("relative",)))
                outcomes["odd" if judged.suspicious else "ok" if judged.valid else "invalid"] += 1
                kinds.update(layer.kind for layer in trial.model.layers)
        seconds = time.monotonic() - began
    busy = ", ".join(f"{name} {spent / seconds:.0%}" for name, spent in runner.busy.items())
    print(
        f"{done} cases of {LAYERS} layers on {', '.join(names)}: {done / seconds * 60:.0f} cases "
        f"a minute ({seconds:.1f} s); {len(kinds)} kinds; {dict(outcomes)}; computing: {busy}"
    )


if __name__ == "__main__":
    main()
