"""AUDEE's tables 1 to 3 in small: inconsistencies by level, causes, and NaN (Guo et al., ASE 2020).

    python benchmarks/audee_tables.py lenet5 lstm-imdb [--targets torch,jax] [--networks 20]

The seeds are models of the zoo (`outvote zoo list`; the paper's are the group AUDEE) or files. A
weak fault is planted in the first target (ReLU and tanh are off by a share) unless `--fault 0`.
Printed:

- table 1: variants (NET) on which labels differ, and of the others how many fail by searching
  inputs, weights, or both, within `--seconds` each;
- table 2: (layer, parameter) pairs of causal localisation beside CRADLE's third-quartile list, and
  how many of that list are layers which agree when given the same tensors;
- table 3: in how many variants NaN was found and how soon, by AUDEE's search and by a
  coverage-guided one in the manner of TensorFuzz (Odena et al., 2019) with the same time;
- `--tables classic`: the paper's example, causes of what Theano and TensorFlow differ by in
  ResNet-20 on Keras 2.2.4 (it needs the classic environments, see docs/versions.md);
- `--tables search`: genetic against gradient at input level: how far each leads the logits apart.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import mean

import numpy as np

from outvote.campaign.job import FuzzJob, SeedFile
from outvote.campaign.probes.climb import Climb
from outvote.campaign.probes.evolution import Evolution, ranges_request
from outvote.campaign.probes.genome import Genome
from outvote.campaign.seeds import Seed, read_seeds
from outvote.commands.blocks import seeds_of
from outvote.commands.localize.job import LocalizeJob
from outvote.commands.localize.run import run as run_localize
from outvote.core.model import Model
from outvote.core.protocol import ListKinds, RunModel
from outvote.dialects.keras.mutate.catalogue import Catalogue
from outvote.dialects.keras.mutate.maker import Maker
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.targets import BUILT_IN
from outvote.localize.parameters import Localizer
from outvote.mutate.registry import all_rules, mutate
from outvote.run.local import LocalPool
from outvote.run.pool import Pool, asker
from outvote.search.genetic import LEVELS, GeneticSettings
from outvote.targets.choose import choose, known_targets
from outvote.targets.environments.provide import provide

FAULT = """
import keras.src.backend as backend
for name in ("relu", "tanh"):
    def wrap(released):
        return lambda x, *a, **k: released(x, *a, **k) * {share}
    setattr(backend.nn, name, wrap(getattr(backend.nn, name)))
"""
_FAR = 0.5  # TensorFuzz keeps an input whose logits are so far (relative) from all that it kept


class Bench:
    """Two targets, the reference second, and what they are asked."""

    def __init__(self, pool: Pool, names: list[str], settings: GeneticSettings) -> None:
        self.pool, self.names, self.settings = pool, names, settings
        found = pool.ask(names[1], ListKinds())
        maker = Maker(asker(pool, names[1]), pool.blobs)
        self.tools = KerasTools(pool.blobs, maker, Catalogue.of(found.reply))

    def variants(self, seed: Seed, count: int) -> list[Model]:
        """Network mutation: other parameters for a layer."""
        rule = all_rules("keras")["NET"]
        tried = (mutate(rule, seed.subject, self.tools, (i,)) for i in range(4 * count))
        return [subject.model for subject in tried if subject is not None][:count]

    def differ(self, seed: Seed, model: Model) -> bool | None:
        """Whether labels differ on any input of the seed; None if a target cannot run it."""
        batch, steps = seed.case.data.count, len(model.layers)
        request = RunModel(model=model, inputs=seed.inputs, batch=batch, steps=steps)
        runs = self.pool.ask_all(self.names, request)
        if not all(run.ok for run in runs.values()):
            return None
        labels = [run.reply.outputs.arrays[0].argmax(axis=-1) for run in runs.values()]
        return bool((labels[0] != labels[1]).any())

    def fails(self, seed: Seed, model: Model, level: str, seconds: float) -> bool:
        began = time.monotonic()
        evolution = Evolution(self.pool, self.names, self.settings)
        turn = 0
        while time.monotonic() - began < seconds:
            row = seed.case.data.take([turn % seed.case.data.count])
            genome = Genome(model, row, LEVELS[level], self.pool.blobs)
            rng = np.random.default_rng(turn)
            found = evolution.search(genome, rng, lambda: time.monotonic() - began >= seconds)
            if found.failure:
                return True
            turn += 1
        return False

    def nan_by_audee(self, seed: Seed, model: Model, seconds: float) -> float | None:
        """Seconds until NaN; None where the time was over."""
        began = time.monotonic()
        evolution = Evolution(self.pool, self.names[:1], self.settings)
        turn = 0
        while time.monotonic() - began < seconds:
            row = seed.case.data.take([turn % seed.case.data.count])
            genome = Genome(model, row, LEVELS["IN-WT"], self.pool.blobs)
            rng = np.random.default_rng(turn)
            found = evolution.search(genome, rng, lambda: time.monotonic() - began >= seconds)
            if found.failure == "nan":
                return time.monotonic() - began
            turn += 1
        return None

    def nan_by_coverage(self, seed: Seed, model: Model, seconds: float) -> float | None:
        """Gaussian noise on inputs of a corpus; an input with new logits joins the corpus."""
        began = time.monotonic()
        rng = np.random.default_rng(0)
        corpus = [seed.case.data.take([i]) for i in range(min(8, seed.case.data.count))]
        known: list[np.ndarray] = []
        while time.monotonic() - began < seconds:
            chosen = [corpus[int(rng.integers(len(corpus)))] for _ in range(10)]
            inputs = [np.concatenate(arrays) for arrays in zip(*chosen, strict=True)]
            moved = [
                (a + rng.normal(size=a.shape) * (a.std() or 1.0)).astype(a.dtype)
                if a.dtype.kind == "f"
                else rng.permutation(a.reshape(-1)).reshape(a.shape)
                for a in inputs
            ]
            blobs = [self.pool.blobs.put(array) for array in moved]
            run = self.pool.ask(self.names[0], ranges_request(model, blobs))
            if not run.ok:
                return None
            if run.reply.bad.any():
                return time.monotonic() - began
            for i, logits in enumerate(run.reply.wanted.reshape(len(moved[0]), -1)):
                size = float(np.linalg.norm(logits)) or 1.0
                if not known or min(np.linalg.norm(logits - k) for k in known) > _FAR * size:
                    known.append(logits)
                    corpus.append(tuple(array[i : i + 1] for array in moved))
        return None


def table_1_and_2(bench: Bench, seed: Seed, options: argparse.Namespace) -> None:
    variants = bench.variants(seed, options.networks)
    told = [(model, bench.differ(seed, model)) for model in variants]
    apart = [model for model, differ in told if differ]
    quiet = [model for model, differ in told if differ is False][: options.searched]
    levels = {
        level: sum(bench.fails(seed, model, level, options.seconds) for model in quiet)
        for level in LEVELS
    }
    cells = " | ".join(f"{n}" for n in levels.values())
    print(
        f"table 1 | {seed.name} | {len(variants)} variants | NET {len(apart)} | "
        f"of {len(quiet)} quiet ones IN, WT, IN-WT: {cells}",
        flush=True,
    )
    localizer = Localizer(bench.pool, bench.names[1])
    pairs, red, wrong = [], [], []
    for model in (apart or quiet)[: options.searched]:
        found = localizer.locate(model, seed.case.data.take([0]), bench.names[1], bench.names[0])
        guilty = {suspect.layer.name for suspect in found.suspects}
        roots = [suspect for suspect in found.suspects if not suspect.same_as]
        pairs.append(sum(max(1, len(suspect.causes)) for suspect in roots))
        red.append(len(found.cradle.red))
        wrong.append(len(set(found.cradle.red) - guilty))
    if pairs:
        print(
            f"table 2 | {seed.name} | {len(pairs)} networks of {len(seed.subject.model.layers)} "
            f"layers | pairs {mean(pairs):.2f} | CRADLE {mean(red):.2f} layers, of them "
            f"{mean(wrong):.2f} agree on equal tensors",
            flush=True,
        )


def table_3(bench: Bench, seed: Seed, options: argparse.Namespace) -> None:
    variants = bench.variants(seed, options.networks)
    for name, search in (("AUDEE", bench.nan_by_audee), ("coverage", bench.nan_by_coverage)):
        times = [search(seed, model, options.seconds) for model in variants]
        soon = [seconds for seconds in times if seconds is not None]
        first = f", after {mean(soon):.2f} s on average" if soon else ""
        print(
            f"table 3 | {seed.name} | {name}: NaN in {len(soon)} of {len(times)}{first}", flush=True
        )


def searches(bench: Bench, seed: Seed, options: argparse.Namespace) -> None:
    grown: dict[str, list[float]] = {"genetic": [], "gradient": []}
    for i in range(min(options.searched, seed.case.data.count)):
        genome = Genome(seed.subject.model, seed.case.data.take([i]), ("input",), bench.pool.blobs)
        for name, search in (
            ("genetic", Evolution(bench.pool, bench.names, bench.settings).search),
            ("gradient", Climb(bench.pool, bench.names, bench.settings).search),
        ):
            found = search(genome, np.random.default_rng(i))
            if found is not None and found.before > 0:
                grown[name].append(found.fitness / found.before)
    told = ", ".join(f"{n} {np.median(g):.3g} times" for n, g in grown.items() if g)
    print(f"search | {seed.name} | distance of the logits grew (median): {told}", flush=True)


def classic(seed: SeedFile) -> None:
    """The causes of what Theano and TensorFlow differ by in one network."""
    wanted = ["keras==2.2.4/theano", "keras==2.2.4/tensorflow"]
    targets = tuple(provide(choose(wanted, known_targets())))
    result = run_localize(LocalizeJob(seed.model, targets, seed.data))
    (pair,) = result["pairs"]
    for suspect in pair["suspects"]:
        told = [f"{cause['parameter']}={cause['value']}" for cause in suspect["causes"]]
        print(f"classic | {seed.name} | {suspect['layer']} | {', '.join(told)}", flush=True)
    print(f"classic | {seed.name} | CRADLE's list: {len(pair['cradle'])} layers", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seeds", nargs="+", help="names of the zoo, or model files")
    parser.add_argument("--targets", default="torch,jax", help="the faulty one, the reference")
    parser.add_argument("--networks", type=int, default=20, help="variants per seed")
    parser.add_argument("--searched", type=int, default=5, help="quiet variants to search")
    parser.add_argument("--seconds", type=float, default=5.0, help="per search")
    parser.add_argument("--fault", type=float, default=0.02, help="its size; 0: none")
    parser.add_argument("--tables", default="1,3,search")
    options = parser.parse_args()
    if options.tables == "classic":
        for file in seeds_of(options.seeds, []):
            classic(file)
        return
    first, reference = options.targets.split(",")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "fault.py"
        script.write_text(FAULT.format(share=1 + options.fault))
        faulty = replace(BUILT_IN[first], name=f"faulty-{first}", setup=script)
        targets = (faulty if options.fault else BUILT_IN[first], BUILT_IN[reference])
        job = FuzzJob(seeds_of(options.seeds, []), targets, inputs=32)
        with LocalPool(targets) as pool:
            for name, run in pool.start().items():
                assert run.ok, f"{name}: {run.message}"
            bench = Bench(pool, [t.name for t in targets], GeneticSettings())
            for seed in read_seeds(pool, job):
                if "1" in options.tables.split(","):
                    table_1_and_2(bench, seed, options)
                if "3" in options.tables.split(","):
                    table_3(bench, seed, options)
                if "search" in options.tables.split(","):
                    searches(bench, seed, options)


if __name__ == "__main__":
    main()
