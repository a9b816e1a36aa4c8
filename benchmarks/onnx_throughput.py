"""How many graphs of five nodes a minute go through all targets, each in a process of its own.

    python benchmarks/onnx_throughput.py [--seconds 30] [--targets onnxruntime,opencv]

Every graph is new: five nodes of any operator, drawn, run on every target, compared. Beside the
rate stand the physical limit, which is what the runtimes alone take of the processors for the same
graphs, and where the rest goes.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter

from outvote.dialects.onnx.nouns.batch import DrawGraphs
from outvote.dialects.onnx.sieve import PACK, GraphSieve, SievedPack
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.run.local import LocalPool
from outvote.targets.choose import choose

NODES = 5
READER = "onnx-reference"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--targets", default="onnxruntime,opencv,onnx-reference")
    parser.add_argument("--pack", type=int, default=PACK)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    targets = choose(options.targets.split(","), BUILT_IN)
    names = [target.name for target in targets]
    everyone = {target.name: target for target in (*targets, BUILT_IN[READER])}
    wanted = DrawGraphs(seed=options.seed, first=0, count=options.pack, least=NODES, most=NODES)
    with (
        LocalPool(everyone.values(), jobs=2 * len(names) + 1) as pool,
        GraphSieve(pool, names, READER, wanted) as sieve,
    ):
        measure(sieve, names, options.seconds)


def measure(sieve: GraphSieve, names: list[str], seconds: float) -> None:
    packs = sieve.packs()
    next(packs)  # imports and first runs are not what is measured
    began, cpu = time.monotonic(), os.times()
    done: list[SievedPack] = []
    while time.monotonic() - began < seconds:
        done.append(next(packs))
    took, after = time.monotonic() - began, os.times()
    tested = sum(pack.tested for pack in done)
    print(f"{60 * tested / took:,.0f} graphs a minute ({tested} in {took:.1f} s)")
    inside = {name: sum(pack.inside[name] for pack in done) for name in names}
    limit = 60 * tested * (os.cpu_count() or 1) / sum(inside.values())
    print(
        f"the runtimes alone could do {limit:,.0f} a minute on {os.cpu_count()} processors; "
        f"reached: {60 * tested / took / limit:.0%}"
    )
    each = {name: 1000 * value / tested for name, value in inside.items()}
    print("ms a graph inside: " + ", ".join(f"{name} {value:.2f}" for name, value in each.items()))
    own = (after.user - cpu.user + after.system - cpu.system) * 1000 / tested
    compared = 1000 * sum(pack.compared for pack in done) / tested
    print(f"ms a graph in the driver: {own:.2f}, of it comparing {compared:.2f}")
    parted, valid = sum(len(pack.parted) for pack in done), sum(pack.valid for pack in done)
    print(f"some target ran {valid / tested:.1%}; to be looked into: {parted / tested:.1%}")
    for name in names:
        counted = sum((pack.outcomes[name] for pack in done), Counter[str]())
        told = ", ".join(f"{word} {count / tested:.1%}" for word, count in counted.most_common())
        print(f"  {name}: {told}")


if __name__ == "__main__":
    main()
