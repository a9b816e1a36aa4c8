"""PyTorch's own operator samples on every target: agreements, gaps, and what parts targets.

    .venv/bin/python benchmarks/torch_ops.py --samples 1000 --compiled 64

Each sample is one operator on arguments of PyTorch's OpInfo database, in some type and layout, as
`outvote fuzz --strategy layers` draws them. Inductor, which takes seconds for each, gets some of
them. What parts targets is told by what it looks like, with the number of one sample;
`--show NUMBER` prints that program.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from outvote.bench.sieve import PACK, answers_of
from outvote.core.arrays import Array
from outvote.core.batch import DrawCases, GraphAnswer, GraphCase, cases_in, packed_cases
from outvote.core.target import Outcome
from outvote.dialects.torch_export.nouns.program import program_in
from outvote.dialects.torch_export.targets import BUILT_IN
from outvote.judge.partings import is_parted, key_of
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled

EAGER, COMPILED = "torch:eager", "torch:inductor"
TARGETS = (EAGER, "torch:decomposed", "onnxruntime:torch", "openvino:torch")
COLUMNS = ("agrees", "differs", "gap", "error", "dies")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--compiled", type=int, default=64, help="samples for Inductor")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", type=int, help="print one sample's program and answers")
    options = parser.parse_args()
    with LocalPool([BUILT_IN[name] for name in (*TARGETS, COMPILED)]) as pool:
        if options.show is not None:
            show(pool, options.seed, options.show)
            return
        cases = drawn(pool, options.seed, options.first, options.samples)
        every = max(1, len(cases) // max(1, options.compiled))
        compiled = range(0, len(cases), every) if options.compiled else range(0)
        table(cases, options.first, asked(pool, cases, compiled))


def drawn(pool: Pool, seed: int, first: int, count: int) -> list[GraphCase]:
    """Samples of consecutive numbers, one operator each."""
    found: list[GraphCase] = []
    while len(found) < count:
        start, few = first + len(found), min(PACK, count - len(found))
        wanted = DrawCases(seed=seed, first=start, count=few, most=1, steps=few)
        run = ask_settled(pool, EAGER, wanted)
        if not run.ok:
            raise SystemExit(run.message)
        found += cases_in(run.reply.cases)
    return found


def asked(
    pool: Pool, cases: Sequence[GraphCase], compiled: Sequence[int]
) -> list[dict[str, GraphAnswer]]:
    """What every target makes of every case, Inductor of some."""

    def of(name: str) -> dict[int, GraphAnswer]:
        places = compiled if name == COMPILED else range(len(cases))
        found: dict[int, GraphAnswer] = {}
        for start in range(0, len(places), PACK):
            some = places[start : start + PACK]
            packed: Array = packed_cases([cases[n] for n in some])
            found |= dict(zip(some, answers_of(pool, name, packed, len(some)), strict=True))
        return found

    names = (*TARGETS, COMPILED)
    with ThreadPoolExecutor(len(names)) as threads:
        found = dict(zip(names, threads.map(of, names), strict=True))
    return [
        {n: told[place] for n, told in found.items() if place in told}
        for place in range(len(cases))
    ]


def table(
    cases: Sequence[GraphCase], first: int, answers: Sequence[Mapping[str, GraphAnswer]]
) -> None:
    operators = {program_in(case.content).model.name for case in cases}
    print(f"{len(cases)} samples of {len(operators)} operators\n")
    print(f"| target | samples | {' | '.join(COLUMNS)} |")
    print("|---|---|" + "---|" * len(COLUMNS))
    for name in (*TARGETS[1:], COMPILED):
        counted = Counter(judged(told, name) for told in answers if name in told)
        row = " | ".join(str(counted[column]) for column in COLUMNS)
        print(f"| `{name}` | {sum(counted.values())} | {row} |")
    causes = defaultdict(list)
    for place, (case, told) in enumerate(zip(cases, answers, strict=True)):
        if is_parted(told):
            causes[key_of(case, told)].append(first + place)
    print(f"\n{sum(map(len, causes.values()))} samples part targets, in {len(causes)} ways:\n")
    for key, numbers in sorted(causes.items(), key=lambda row: row[0].family):
        print(f"- {len(numbers)}x {key.family} [{numbers[0]}] {key.detail[:160]}")


def judged(told: Mapping[str, GraphAnswer], name: str) -> str:
    """How a target stands to eager PyTorch on one sample."""
    outcome = told[name].outcome
    if outcome is Outcome.OK:
        return "differs" if is_parted({n: told[n] for n in (EAGER, name)}) else "agrees"
    if outcome is Outcome.UNSUPPORTED:
        return "gap"
    return "error" if outcome is Outcome.ERROR else "dies"


def show(pool: Pool, seed: int, number: int) -> None:
    (case,) = drawn(pool, seed, number, 1)
    for layer in program_in(case.content).model.layers:
        print(layer.name, "=", layer.kind, dict(layer.config), dict(layer.kwargs))
    for place, array in enumerate(case.feeds):
        print(f"x{place} = {array.dtype} {array.shape} {array.reshape(-1)[:24].tolist()}")
    for name in (*TARGETS, COMPILED):
        (answer,) = answers_of(pool, name, packed_cases([case]), 1)
        told = [array.reshape(-1)[:12].tolist() for array in answer.outputs]
        print(name, answer.outcome.value, told, answer.message[:300].replace("\n", " "))


if __name__ == "__main__":
    main()
