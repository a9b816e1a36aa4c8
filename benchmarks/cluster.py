"""Campaigns on a cluster: how they scale, what Ray costs, and what is left when machines die.

    .venv/bin/python benchmarks/cluster.py                       # 1, 2, 4, 8, 16 crews
    .venv/bin/python benchmarks/cluster.py --real jax,torch      # one crew, with and without Ray
    .venv/bin/python benchmarks/cluster.py --chaos --seconds 300 # a crew or node dies every 10 s
    .venv/bin/python benchmarks/cluster.py --driver              # what a mutant costs the driver

Nodes are those of Ray's own test cluster, on this machine. Fake targets wait 50 ms for each model,
so that many crews fit on few processors; the last part lets them answer at once, so that the driver
is what is waited for.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from conftest import fake, write_fake_data, write_fake_model
from outvote.campaign.campaign import Campaign
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.progress import Progress
from outvote.commands.blocks import seeds_of
from outvote.commands.fuzz.run import on_cluster, start
from outvote.core.target import Target
from outvote.dialects.keras.targets import BUILT_IN
from outvote.fleet.address import Address, address_of
from outvote.fleet.cluster import QUIET
from outvote.fleet.fleet import crews_on
from outvote.run.folder import OwnedFolder
from outvote.store import facts
from outvote.store.store import Store
from outvote.targets.choose import choose

RULES = ("GF", "WS", "NAI", "NS")  # of weights alone: every mutant holds the layer that waits
MEMORY = 256 << 20  # bytes of a worker
WARM_UP = 0.1  # of the chaos: what its memory is at first says nothing
NODE = {"object_store_memory": 80 << 20, "include_dashboard": False}
WAIT = 0.05  # seconds, of the fake worker's misdeed


def waiting() -> tuple[Target, ...]:
    return (fake("a", "wait:soft"), fake("b", "wait:soft"))


def prompt() -> tuple[Target, ...]:
    return (fake("a"), fake("b"))


def job_of(folder: Path, targets: tuple[Target, ...], budget: Budget, **more: Any) -> FuzzJob:
    model, data = write_fake_model(folder / "model.json"), write_fake_data(folder / "data.npz")
    settings = {"rules": RULES, "inputs": 8, "minimise": 0.0, "confirm": 0, **more}
    seeds = (SeedFile("seed", model, data),)
    return FuzzJob(seeds, targets, budget=budget, memory_limit=MEMORY, **settings)


@contextmanager
def cluster(nodes: int, room: int) -> Iterator[Any]:
    """A head without room, and nodes with room for so many crews of two targets."""
    os.environ.update(QUIET)
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **NODE})
    try:
        made.outvote = [add_node(made, room) for _ in range(nodes)]
        yield made
    finally:
        made.shutdown()


def add_node(made: Any, room: int) -> Any:
    return made.add_node(num_cpus=2 * room, memory=2 * room * MEMORY, **NODE)


@dataclass
class Pace:
    """Mutants a second while all crews are at work, and what each cost the driver."""

    crews: int
    seconds: float
    ready_at: float | None = None
    tested: int = 0
    spent: float = 0.0  # processor seconds of the driver
    rate: float = 0.0
    cost: float = 0.0

    def ready(self, crews: list[dict[str, Any]]) -> bool:
        return len(crews) == self.crews and all(c["doing"] != "starting" for c in crews)


def paced(address: Address, job: FuzzJob, out: Path, pace: Pace) -> Pace:
    """A campaign that is stopped so many seconds after the last crew came."""
    noted: list[dict[str, Any]] = []

    def note(crews: list[dict[str, Any]]) -> None:
        noted[:] = crews

    def watch(progress: Progress) -> None:
        now = time.monotonic()
        if pace.ready_at is None:
            if pace.ready(noted):
                pace.ready_at, pace.tested, pace.spent = now, progress.tested, time.process_time()
        elif now - pace.ready_at >= pace.seconds:
            tested = progress.tested - pace.tested
            pace.rate = tested / (now - pace.ready_at)
            pace.cost = (time.process_time() - pace.spent) / tested
            raise KeyboardInterrupt

    out.mkdir()
    with closing(Store(out, create=True)) as store:
        store.note(facts.JOB, job.stored())
        with crews_on(address, job, (), out, note) as crews:
            Campaign(job, store, crews).run(watch)
    return pace


def scaling(counts: list[int], seconds: float) -> None:
    nodes = min(4, max(counts))
    with OwnedFolder() as folder:
        job = job_of(folder, waiting(), Budget(mutants=10**6))
        single = 0.0
        print(f"targets that wait {WAIT * 1000:.0f} ms, {nodes} nodes, {os.cpu_count()} processors")
        for count in counts:
            some = min(nodes, count)
            with cluster(some, -(-count // some)) as made:
                head = Address(head=made.address)
                pace = paced(head, job, folder / str(count), Pace(count, seconds))
            single = single or pace.rate / count
            print(
                f"{count:3} crews: {pace.rate:6.1f} mutants a second, "
                f"{pace.rate / count / single:.0%} of linear, driver "
                f"{pace.cost * 1000:.2f} ms a mutant, {pace.cost * pace.rate:.0%} of a processor",
                flush=True,
            )


def driver_cost(crews: int, seconds: float) -> None:
    with OwnedFolder() as folder:
        job = job_of(folder, prompt(), Budget(mutants=10**6))
        pace = paced(Address(crews=crews), job, folder / "out", Pace(crews, seconds))
    print(
        f"targets that answer at once, {crews} crews: {pace.rate:.1f} mutants a second, "
        f"driver {pace.cost * 1000:.2f} ms of a processor a mutant: "
        f"{1 / pace.cost:.0f} mutants a second at most"
    )


def rate_of(result: dict[str, Any]) -> float:
    spent = result["time"]
    return float(result["tested"] / (spent["breeding"] - spent["confirming"]) * 60)


def real(names: str, mutants: int, rounds: int) -> None:
    targets = tuple(choose(names.split(","), BUILT_IN))
    job = FuzzJob(
        seeds_of(["lenet5"], []),
        targets,
        budget=Budget(mutants=mutants),
        minimise=0.0,
        confirm=0,
    )
    rates: dict[str, list[float]] = {"without Ray": [], "one crew": []}
    with OwnedFolder() as folder:
        for number in range(rounds + 1):
            work = on_cluster(address_of("local:1"), ())
            pair = {
                "without Ray": rate_of(start(job, folder / f"here {number}")),
                "one crew": rate_of(start(job, folder / f"there {number}", work=work)),
            }
            if number:  # in the first JAX compiles what the others find on disk
                for name, rate in pair.items():
                    rates[name].append(rate)
    for name, found in rates.items():
        print(f"{name}: {', '.join(f'{rate:.0f}' for rate in found)} mutants a minute")
    ratio = sum(rates["one crew"]) / sum(rates["without Ray"])
    print(f"lenet5 on {names}, {mutants} mutants: one crew has {ratio:.0%} of the rate without Ray")


def crews_alive() -> list[psutil.Process]:
    below = psutil.Process().children(recursive=True)
    return [process for process in below if process.name().startswith("ray::CrewHost")]


def chaos(seconds: float, every: float) -> None:
    rng = random.Random(0)
    with OwnedFolder() as folder, cluster(3, 1) as made:
        job = job_of(folder, waiting(), Budget(seconds=seconds), rules=(), strategy="mixed")
        job = job.but(targets=(*waiting()[:1], fake("bad", "lie:Rescaling")))
        kills = {"crews": 0, "nodes": 0}
        last, held = time.monotonic(), dict[float, float]()  # second: MiB

        def watch(progress: Progress) -> None:
            nonlocal last
            held[progress.seconds] = psutil.Process().memory_info().rss / 2**20
            if time.monotonic() - last < every:
                return
            last = time.monotonic()
            alive = crews_alive()
            if alive and sum(kills.values()) % 2 == 0:
                os.kill(rng.choice(alive).pid, signal.SIGKILL)
                kills["crews"] += 1
            else:
                made.remove_node(made.outvote.pop(0), False)
                made.outvote.append(add_node(made, 1))
                kills["nodes"] += 1

        work = on_cluster(Address(head=made.address), ())
        result = start(job, folder / "out", watch, work=work)
        told = whole(folder / "out")
        print(
            f"{result['seconds']:.0f} s, {kills['crews']} crews and {kills['nodes']} nodes killed: "
            f"{result['tested']} mutants, {told}; {len(result['findings'])} findings"
        )
        thirds = in_thirds(held, seconds)
        print(
            f"memory of the driver after {seconds * WARM_UP:.0f} s, by thirds: "
            f"{', '.join(f'{third:.1f}' for third in thirds)} MiB: "
            f"{max(thirds) / min(thirds) - 1:.1%} apart"
        )


def in_thirds(held: Mapping[float, float], seconds: float) -> list[float]:
    """The mean of each third of what comes after the warm-up."""
    begin = seconds * WARM_UP
    length = (seconds - begin) / 3
    thirds = [
        [of for at, of in held.items() if 0 <= at - begin - place * length < length]
        for place in range(3)
    ]
    return [fmean(third) for third in thirds]


def whole(folder: Path) -> str:
    """Whether every number is there, once."""
    with closing(Store(folder, create=False)) as store:
        numbers = [row.number for row in store.rows()]
    missing = len(set(range(1, max(numbers) + 1)) - set(numbers))
    return f"{missing} numbers missing, {len(numbers) - len(set(numbers))} twice"


def killed_driver(mutants: int) -> None:
    """The driver is shot in the middle; what it had given out is done by the next one."""
    with tempfile.TemporaryDirectory() as name:
        folder, out = Path(name), Path(name) / "out"
        job = job_of(folder, prompt(), Budget(mutants=mutants))
        config = folder / "targets.toml"
        config.write_text("".join(f'[targets.{t}]\nextends = "fake"\n' for t in "ab"))
        common = ["--config", str(config), "--cluster", "local:2", "--quiet"]
        seed = [str(job.seeds[0].model), "--data", str(job.seeds[0].data), "--targets", "a,b"]
        more = ["--budget", str(mutants), "--memory", "0.25", "--confirm", "0", "--minimise", "0"]
        command = [sys.executable, "-m", "outvote", "fuzz"]
        first = [*command, *seed, *more, *common, "--out", str(out)]
        with subprocess.Popen(first, stdout=subprocess.DEVNULL) as driver:
            while stored(out) < mutants // 3:
                assert driver.poll() is None, "the campaign ended early"
                time.sleep(0.05)
            driver.kill()
        at, lost = stored(out), len(given_out(out))
        subprocess.run([*command, "--resume", str(out), *common], stdout=subprocess.DEVNULL)
        print(
            f"the driver was killed after {at} mutants, with {lost} given out: {stored(out)} of "
            f"{mutants} and a seed after --resume, {whole(out)}"
        )


def stored(folder: Path) -> int:
    if not (folder / "outvote.db").exists():
        return 0
    with closing(Store(folder, create=False)) as store:
        return len(store.rows())


def given_out(folder: Path) -> list[Any]:
    with closing(Store(folder, create=False)) as store:
        return list(store.unanswered())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--crews", default="1,2,4,8,16", help="how many, one after the other")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each, or of the chaos")
    parser.add_argument("--real", metavar="TARGETS", help="one crew of real targets instead")
    parser.add_argument("--mutants", type=int, default=400, help="of real targets")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--chaos", action="store_true")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two deaths")
    parser.add_argument("--driver", action="store_true")
    options = parser.parse_args()
    if options.real:
        real(options.real, options.mutants, options.rounds)
    elif options.chaos:
        chaos(options.seconds, options.every)
        killed_driver(600)
    elif options.driver:
        driver_cost(2, options.seconds)
    else:
        scaling([int(count) for count in options.crews.split(",")], options.seconds)


if __name__ == "__main__":
    main()
