"""How fast the pages of `outvote serve` are on a large store, and how much memory they take.

    .venv/bin/python benchmarks/workbench.py
    .venv/bin/python benchmarks/workbench.py --seconds 3600
    .venv/bin/python benchmarks/workbench.py --seconds 180 --pace 20
    .venv/bin/python benchmarks/workbench.py --seconds 600 --browsers 10

Makes a store of a million mutants and ten thousand findings (a minute, 130 MB), serves it in
a process of its own, and asks for pages, one after the other. Then ten clients look every second
while the campaign goes on: five follow its page, three the list of runs, two type filters. New are
16 mutants a second, two findings every five seconds, and an event every half second; --pace makes
all of that so many times as fast. With --browsers, windows of a Chromium look instead.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil

from outvote.core.events import MutantsTested, Started
from outvote.store import facts
from outvote.store.owner import this_process
from outvote.store.store import Row, Store

RULES = ("GF", "WS", "NEB", "NAI", "NS", "LA", "LC", "LR", "LS", "MLA", "AFRm", "AFRp", "BR")
LAYERS = ("Dense", "Conv2D", "LSTM", "BatchNormalization", "Softmax", "GRU", "Attention", "Add")
TARGETS = ("tensorflow", "jax", "torch", "openvino", "numpy")
TRIAGES = ("bug", "bug", "unknown", "difference", "precision")
KINDS = ("inconsistency", "inconsistency", "nan", "crash", "shape", "hang")
PER_SECOND = 12  # mutants of the campaign
FILTERS = {
    "a word": "text=lstm",
    "three words": "text=torch+dense+nan",
    "one letter": "text=a",
    "nothing is found": "text=no+such+thing",
    "verdict and target": "triage=bug&accused=jax",
    "newest first": "sort=newest",
    "the last page": "page=99",
}


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.store or Path(temporary) / "campaign"
        if not (folder / "outvote.db").exists():
            began = time.monotonic()
            make(folder, options.mutants, options.findings)
            size = (folder / "outvote.db").stat().st_size / 2**20
            print(f"store: {size:.0f} MiB, made in {time.monotonic() - began:.0f} s")
        with served(folder) as (address, process):
            measure(address)
            live(address, process, folder, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=1_000_000)
    parser.add_argument("--findings", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="of live updates")
    parser.add_argument("--pace", type=float, default=1.0, help="of updates and of clients")
    parser.add_argument("--browsers", type=int, default=0, help="windows of Chromium")
    parser.add_argument("--store", type=Path, help="keep the store in this folder, and use it")
    return parser.parse_args()


def make(folder: Path, mutants: int, findings: int) -> None:
    """A campaign as it would be stored, its numbers drawn."""
    folder.mkdir(parents=True)
    rng = random.Random(0)
    with closing(Store(folder, create=True)) as store:
        job = {"strategy": "mixed", "targets": list(TARGETS), "mad_threshold": 0.1}
        for fact, value in {
            facts.JOB: job,
            facts.CREATED: "2026-01-01T00:00:00+00:00",
            facts.DRAWABLE: [f"Kind{n}" for n in range(120)],
            facts.BUSY: dict.fromkeys(TARGETS, mutants / PER_SECOND / 2),
            facts.STATE: {"tallies": {rule: [mutants // 13, 9] for rule in RULES}},
            facts.OWNER: this_process(),
        }.items():
            store.note(fact, value)
        store.begin(Started("fuzz"))
        with store.transaction():
            for number in range(1, mutants + 1):
                store.add(mutant(number, rng))
                if number % 8 == 0:
                    store.tell(progress(number, mutants, number * findings // mutants))
        with store.transaction():
            for place in range(findings):
                number = 1 + place * mutants // findings
                met(store, place, number, rng)


def mutant(number: int, rng: random.Random) -> Row:
    parent = None if number == 1 else rng.randint(max(1, number - 500), number - 1)
    rule = None if number == 1 else rng.choice(RULES)
    outcome = "invalid" if rng.random() < 0.01 else "ok"
    new = " ".join(rng.choices(LAYERS, k=2))
    seconds, at = rng.random() / 20, number / PER_SECOND
    return Row(number, parent, 1, rule, number, outcome, 0.5, False, 12, seconds, at, "", new)


def progress(number: int, mutants: int, findings: int) -> MutantsTested:
    seconds, share = number / PER_SECOND, min(0.99, number / mutants / 2)
    return MutantsTested(
        number, number, findings, seconds, share, min(120, number // 50), min(4000, number // 9)
    )


def met(store: Store, place: int, number: int, rng: random.Random) -> None:
    """A finding with a map of twenty layers: about 5 kB."""
    accused, layer = rng.choice(TARGETS), rng.choice(LAYERS)
    kind = rng.choice(KINDS)
    node = {"kind": layer, "delta": 0.1, "rate": 0.2, "red": False, "isolated": 0.0}
    nodes = [{"id": f"{layer.lower()}_{n}", **node, "config": {"units": n}} for n in range(20)]
    edges = [[f"{layer.lower()}_{n}", f"{layer.lower()}_{n + 1}"] for n in range(19)]
    data = {
        "fingerprint": fingerprint(place), "kind": kind, "triage": rng.choice(TRIAGES),
        "title": f"{accused} differs by {rng.random():.2g} (relative) in {layer} layer '{place}'",
        "reason": "2 independent implementations agree. " * 4, "targets": list(TARGETS),
        "accused": accused, "layer": f"{layer.lower()}_7", "layer_kind": layer,
        "distance": rng.random(), "metric": "relative", "inputs": [0], "parameters": {"units": 3},
        "localization": {"targets": ["jax", accused], "map": {"nodes": nodes, "edges": edges}},
    }  # fmt: skip
    store.found(fingerprint(place), number, number / PER_SECOND, data)


def fingerprint(place: int) -> str:
    return hashlib.sha256(str(place).encode()).hexdigest()[:12]


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    command = [sys.executable, "-u", "-m", "outvote", "serve", str(folder)]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found, "it did not start"
    print(f"ready after {time.monotonic() - began:.1f} s")
    try:
        yield found[0], psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def measure(address: str) -> None:
    first = asked(address)
    print(f"first page: {first:.0f} ms")
    key = re.search(r"/at/(\w+)", read(address))
    assert key
    pages = {
        "runs": "",
        "the campaign": f"at/{key[1]}",
        "findings": "findings",
        "a finding": f"finding/{fingerprint(77)}",
        **{f"filter, {name}": f"findings/rows?{query}" for name, query in FILTERS.items()},
    }
    for name, path in pages.items():
        times = sorted(asked(address + path) for _ in range(15))
        print(f"{name}: median {statistics.median(times):.0f} ms, worst {times[-1]:.0f} ms")


def asked(address: str) -> float:
    """Milliseconds until a page has come."""
    began = time.perf_counter()
    read(address)
    return 1000 * (time.perf_counter() - began)


def read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(answer.read().decode())


def live(address: str, process: psutil.Process, folder: Path, options: argparse.Namespace) -> None:
    """Ten that look, one that writes; the server's memory every minute, at least nine times."""
    key = re.search(r"/at/(\w+)", read(address))
    assert key
    stop, times, met_so_far = threading.Event(), list[float](), [0, 0]

    def look(path: str) -> None:
        version = ""
        while not stop.wait(1.0 / options.pace):
            began = time.perf_counter()
            text = read(address + path + version)
            times.append(1000 * (time.perf_counter() - began))
            if found := re.search(r'data-version="([^"]+)"', text):
                version = f"?v={found[1]}"

    def write() -> None:
        rng, number, place = random.Random(1), options.mutants, options.findings
        with closing(Store(folder, create=False)) as store:
            number = store._db.execute("SELECT max(number) FROM mutants").fetchone()[0]
            place = store._db.execute("SELECT count(*) FROM findings").fetchone()[0]
            met_so_far[:] = [place, place]
            while not stop.wait(0.5 / options.pace):
                with store.transaction():
                    for _ in range(8):
                        number += 1
                        store.add(mutant(number, rng))
                    if rng.random() < 0.2:
                        met(store, place, number, rng)
                        place += 1
                        met_so_far[1] = place
                    store.again(fingerprint(rng.randrange(place)), number, number / PER_SECOND)
                    store.tell(progress(number, 2 * number, place))

    threads = [threading.Thread(target=write)]
    browsers: Any = None
    if options.browsers:
        browsers = windows(address + f"at/{key[1]}", options.browsers)
    else:
        paths = [f"at/{key[1]}/live"] * 5 + ["live"] * 3
        paths += ["findings/rows?text=dense", "findings/rows?text=torch+nan"]
        threads += [threading.Thread(target=look, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    time.sleep(5)
    before = process.cpu_times()
    memory = []
    pause = min(60.0, options.seconds / 9)
    for _ in range(round(options.seconds / pause)):
        time.sleep(pause)
        memory.append(process.memory_info().rss / 2**20)
        print(f"after {len(memory) * pause:.0f} s: {memory[-1]:.0f} MiB", flush=True)
    after = process.cpu_times()
    stop.set()
    for thread in threads:
        thread.join()
    if browsers is not None:
        print(f"windows: {options.browsers}, each shows {shown(browsers)}")
        browsers.quit()
    else:
        worst = sorted(times)[int(0.99 * len(times))]
        middle = statistics.median(times)
        print(f"ten clients: {len(times)} answers, median {middle:.0f} ms, 99 % {worst:.0f} ms")
    used = after.user + after.system - before.user - before.system
    print(f"processor: {100 * used / options.seconds:.0f} % of one core")
    tell(memory, met_so_far)


def tell(memory: list[float], findings: list[int]) -> None:
    """Whether it grew: between the thirds of the time, and within the last two."""
    third = len(memory) // 3
    first, second, last = (
        statistics.fmean(part) for part in (memory[:third], memory[third:-third], memory[-third:])
    )
    print(
        f"memory: {first:.1f}, {second:.1f} and {last:.1f} MiB on average in the thirds of that "
        f"time ({last / first - 1:+.1%}), {max(memory):.1f} at most; findings: "
        f"{findings[0]:,}, then {findings[1]:,}"
    )


def windows(address: str, count: int) -> Any:
    """A Chromium with so many windows on the page of the campaign."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    browser.get(address)
    for _ in range(count - 1):
        browser.switch_to.new_window("window")
        browser.get(address)
    return browser


def shown(browser: Any) -> str:
    """The number of cases that each window shows: all follow the campaign."""
    found = []
    for handle in browser.window_handles:
        browser.switch_to.window(handle)
        time.sleep(2)
        found.append(
            browser.execute_script("return document.querySelector('.figures dd').textContent")
        )
    return json.dumps(found)


if __name__ == "__main__":
    main()
