"""How many mutants a minute, and what each of the design's decisions is worth.

    python benchmarks/throughput.py [SEED.keras --data FILE.npz | ZOO-NAME] [--mutants 300]
    python benchmarks/throughput.py --strategy layers --targets numpy,torch --seconds 90 --verdicts

The second is `outvote fuzz --strategy layers` as one types it: single layers, without seeds. With
`--verdicts`, findings are looked into and confirmed as in real use; where the time goes is printed:
into new mutants, into looks at what is odd, and what waits at the end.

The same campaign (same seed, same mutants) in one run:
  as it is;
  without incremental execution (every layer of every mutant is computed);
  without content addressing (every layer of every mutant is built, every weight sent anew);
  LEMON's way (frameworks are started for every mutant), on a few mutants.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outvote.api.asked import job_asked
from outvote.campaign.campaign import Campaign
from outvote.campaign.crews import OneCrew
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.runner import Runner
from outvote.commands.blocks import seeds_of
from outvote.core.protocol import Forget
from outvote.dialects.keras.targets import BUILT_IN
from outvote.dialects.keras.zoo.catalog import GROUPS
from outvote.run.local import LocalPool
from outvote.store import facts
from outvote.store.store import Store
from outvote.store.summary import fuzz_result
from outvote.targets.choose import choose

TARGETS = ("tensorflow", "jax", "torch")


@dataclass(frozen=True)
class Measured:
    """One campaign: how long, how much of it inside targets, what was found."""

    mutants: int
    seconds: float
    starting: float  # seconds until the first mutant
    busiest: float  # share of the time in which the busiest target computed
    valid: int
    findings: int
    time: Mapping[str, Any]  # of result.json
    after: float  # seconds of looks after the end

    @property
    def rate(self) -> float:
        """Of the budget's time: looks in it count, those after its end do not."""
        return self.mutants / self.seconds * 60

    @property
    def rate_of_search(self) -> float:
        """Of the time for new mutants alone."""
        searching: float = self.time["searching"]
        return self.mutants / max(1e-9, searching) * 60

    @property
    def split(self) -> str:
        parts = {name: self.time[name] for name in ("searching", "looking", "confirming")}
        total = sum(parts.values()) or 1.0
        told = ", ".join(f"{name} {spent / total:.0%}" for name, spent in parts.items())
        return (
            f"{told} of {total:.0f} s, {self.after:.0f} s of the looks after the end; "
            f"{self.time['looks']} looks, {self.time['waiting']} kinds of differences wait; "
            f"starting took {self.starting:.0f} s more"
        )


def run(job: FuzzJob, *, forget: bool = False, restart: bool = False) -> Measured:
    """Breed and run; nothing is investigated twice, everything is stored, as in real use."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Store(Path(folder), create=True)) as store,
    ):
        store.note(facts.JOB, job.stored())
        with LocalPool(job.targets, limits=job.limits, jobs=job.jobs) as pool:
            crews = OneCrew(job, pool, Path(folder), store.tell)
            campaign = Campaign(job, store, crews)
            if forget or restart:
                spoil(crews.crew.has.runner, forget, restart)
            campaign.run()
        rows = [row for row in store.rows() if row.rule]
        time_, after = fuzz_result(store)["time"], store.fact(facts.LOOKING_AFTER)
        seconds = time_["breeding"] - time_["confirming"] - after
        busy = max(store.fact(facts.BUSY).values())
        valid = sum(row.outcome != "invalid" for row in rows)
        found = len(store.findings())
        starting = store.fact(facts.STARTING)
        return Measured(len(rows), seconds, starting, busy / seconds, valid, found, time_, after)


def spoil(runner: Runner, forget: bool, restart: bool) -> None:
    """Take a decision back: before every trial workers forget what they know, or end."""
    original = runner.run

    def spoiled(trials, whom=None, lines=False):  # type: ignore[no-untyped-def]
        found = []
        for trial in trials:
            if forget:
                runner.pool.ask_all(runner.names, Forget())
            if restart:
                for name in runner.names:
                    runner.pool.recycle(name)
            found += original([trial], whom and [whom[trials.index(trial)]], lines)
        return found

    runner.run = spoiled  # type: ignore[method-assign]


def asked_for(options: argparse.Namespace) -> tuple[tuple[SeedFile, ...], tuple[str, ...]]:
    """Seeds and rules as the command line has them: of single layers without a seed, its own."""
    if options.seed is None and options.strategy == "layers":
        job = job_asked("fuzz", strategy="layers", targets=options.targets.split(",")).job
        return job.seeds, job.rules
    name = options.seed or "lenet5"
    data = [options.data] if options.data else []
    return seeds_of(list(GROUPS.get(name, (name,))), data), ()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", nargs="?", help="model file or zoo name; lenet5, for layers none")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--inputs", type=int, default=32)
    parser.add_argument("--restarts", type=int, default=6, help="mutants bred in LEMON's way")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--strategy", default=FuzzJob.strategy)
    parser.add_argument("--seconds", type=float, help="a budget in time instead of in mutants")
    parser.add_argument("--quick", action="store_true", help="only the campaign as it is")
    parser.add_argument("--verdicts", action="store_true", help="also examine what is found")
    options = parser.parse_args()
    seeds, rules = asked_for(options)
    job = FuzzJob(
        seeds=seeds,
        rules=rules,
        targets=tuple(choose(options.targets.split(","), BUILT_IN)),
        budget=Budget(seconds=options.seconds)
        if options.seconds
        else Budget(mutants=options.mutants),
        strategy=options.strategy,
        inputs=options.inputs,
        seed=1,
        # What is done about a finding (20 s at most, and fresh workers at the end) is no mutant.
        minimise=20.0 if options.verdicts else 0.0,
        confirm=1 if options.verdicts else 0,
    )
    plain = run(job)
    named = options.seed or seeds[0].name
    print(f"{named}, {options.targets}, {options.inputs} inputs, {plain.mutants} mutants")
    print(
        f"as it is: {plain.rate:.0f} mutants/min ({plain.seconds:.1f} s), "
        f"{plain.rate_of_search:.0f} of the time for new ones, "
        f"{plain.valid / plain.mutants:.1%} valid, {plain.findings} findings, busiest target "
        f"computes {plain.busiest:.0%} of the time"
    )
    print(f"the time: {plain.split}")
    if options.quick or options.verdicts:
        return
    for words, changed, forget in (
        ("without incremental execution", job.but(keep_outputs=False), False),
        ("without content addressing", job.but(keep_outputs=False), True),
    ):
        other = run(changed, forget=forget)
        print(
            f"{words}: {other.rate:.0f} mutants/min; as it is, {plain.rate / other.rate:.1f} "
            "times as fast"
        )
    few = job.but(budget=Budget(mutants=options.restarts), keep_outputs=False)
    began = time.monotonic()
    lemon = run(few, restart=True)
    print(
        f"LEMON's way, {lemon.mutants} mutants in {time.monotonic() - began:.0f} s: "
        f"{lemon.rate:.1f} mutants/min; as it is, {plain.rate / lemon.rate:.0f} times as fast"
    )


if __name__ == "__main__":
    main()
