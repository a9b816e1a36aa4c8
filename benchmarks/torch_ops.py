"""PyTorch's own operator samples on every target: agreements, gaps, and what parts targets.

    .venv/bin/python benchmarks/torch_ops.py --samples 1000 --rows rows.jsonl --out found
    .venv/bin/python benchmarks/torch_ops.py --table rows.jsonl found

Each sample is one operator on arguments of PyTorch's OpInfo database, in some type and layout, as
`outvote fuzz --strategy layers` draws them. Inductor, which takes seconds for each, gets every
sixteenth. What was asked is kept in `--rows`, from where another call goes on; with `--first`,
several processes share the numbers. What parts targets is told by what it looks like; of each way
the first sample is judged as `outvote check` does (torch_op_verdicts.py), and `--out` gets the
proofs. `--table` prints what files of rows hold; `--show NUMBER` prints a sample's program.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from outvote.bench.sieve import answers_of
from outvote.core.batch import DrawCases, GraphAnswer, GraphCase, cases_in, packed_cases
from outvote.core.target import Outcome
from outvote.dialects.torch_export.nouns.program import program_in
from outvote.dialects.torch_export.targets import BUILT_IN
from outvote.judge.partings import is_parted, key_of, wording
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled
from torch_op_verdicts import SampleJudge, Way

EAGER, COMPILED = "torch:eager", "torch:inductor"
TARGETS = (EAGER, "torch:decomposed", "onnxruntime:torch", "openvino:torch", COMPILED)
EVERY = 16  # samples, of which Inductor gets one
PACK = 16
COLUMNS = ("agrees", "differs", "gap", "error", "dies")
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--rows", type=Path, default=Path("torch_ops.jsonl"))
    parser.add_argument("--first", type=int, default=0, help="number of the first sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a folder for the proofs of findings")
    parser.add_argument("--table", type=Path, nargs="+", help="print what these files hold")
    parser.add_argument("--show", type=int, help="print one sample's program and answers")
    options = parser.parse_args()
    if options.table:
        table([row for path in options.table for row in kept(path)])
        return
    with LocalPool([BUILT_IN[name] for name in TARGETS]) as pool:
        if options.show is not None:
            show(pool, options.seed, options.show)
            return
        rows = kept(options.rows)
        judge = SampleJudge(pool, {way_of(row) for row in rows}, options.out)
        while len(rows) < options.samples:
            first = options.first + len(rows)
            cases = drawn(pool, options.seed, first, min(PACK, options.samples - len(rows)))
            for number, (case, told) in enumerate(asked(pool, cases, first), first):
                rows.append(row_of(number, case, told, judge))
            options.rows.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table(rows[: options.samples])


def kept(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def drawn(pool: Pool, seed: int, first: int, count: int) -> list[GraphCase]:
    """Samples of consecutive numbers, one operator each."""
    wanted = DrawCases(seed=seed, first=first, count=count, most=1, steps=count)
    run = ask_settled(pool, EAGER, wanted)
    if not run.ok:
        raise SystemExit(run.message)
    return cases_in(run.reply.cases)


def asked(
    pool: Pool, cases: Sequence[GraphCase], first: int
) -> list[tuple[GraphCase, dict[str, GraphAnswer]]]:
    """What every target makes of every case, Inductor of some."""

    def of(name: str) -> dict[int, GraphAnswer]:
        every = EVERY if name == COMPILED else 1
        places = [n for n in range(len(cases)) if (first + n) % every == 0]
        packed = packed_cases([cases[n] for n in places])
        answers = answers_of(pool, name, packed, len(places)) if places else []
        return dict(zip(places, answers, strict=True))

    with ThreadPoolExecutor(len(TARGETS)) as threads:
        found = dict(zip(TARGETS, threads.map(of, TARGETS), strict=True))
    return [
        (case, {name: told[place] for name, told in found.items() if place in told})
        for place, case in enumerate(cases)
    ]


def row_of(
    number: int, case: GraphCase, told: Mapping[str, GraphAnswer], judge: SampleJudge
) -> Row:
    parted = key_of(case, told) if is_parted(told) else None
    row = {
        "number": number,
        "operator": program_in(case.content).model.name,
        "answers": {name: judged(told, name) for name in told if name != EAGER},
        "gaps": {
            name: wording(answer.message)
            for name, answer in told.items()
            if answer.outcome is Outcome.UNSUPPORTED
        },
        "parted": [parted.family, parted.detail] if parted is not None else None,
    }
    return row | {"verdicts": judge.verdicts(number, way_of(row), case, list(told))}


def way_of(row: Row) -> Way:
    """What a parting looks like; empty where targets agree."""
    return tuple(row["parted"] or ())


def table(rows: Sequence[Row]) -> None:
    operators = {row["operator"] for row in rows}
    print(f"{len(rows)} samples of {len(operators)} operators\n")
    print(f"| target | samples | {' | '.join(COLUMNS)} |")
    print("|---|---|" + "---|" * len(COLUMNS))
    for name in TARGETS[1:]:
        counted = Counter(row["answers"][name] for row in rows if name in row["answers"])
        told = " | ".join(str(counted[column]) for column in COLUMNS)
        print(f"| `{name}` | {sum(counted.values())} | {told} |")
    ways: dict[Way, list[Row]] = defaultdict(list)
    for row in rows:
        if row["parted"]:
            ways[way_of(row)].append(row)
    print(f"\n{sum(map(len, ways.values()))} samples part targets, in {len(ways)} ways:\n")
    for (family, detail), some in sorted(ways.items()):
        print(f"- {len(some)}x {family} [{some[0]['number']}] {detail[:160]}")
        for verdict in (verdict for row in some for verdict in row["verdicts"]):
            print(f"    {verdict['triage']}: {verdict['title']} ({verdict['reason'][:200]})")
    judged = Counter(v["triage"] for row in rows for v in row["verdicts"])
    print(f"\nof the first samples: {', '.join(f'{n} {what}' for what, n in judged.items())}")


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
    for name in TARGETS:
        (answer,) = answers_of(pool, name, packed_cases([case]), 1)
        told = [array.reshape(-1)[:12].tolist() for array in answer.outputs]
        print(name, answer.outcome.value, told, answer.message[:300].replace("\n", " "))


if __name__ == "__main__":
    main()
