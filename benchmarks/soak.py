"""A long campaign under fire: memory stays flat, nothing is lost or counted twice.

    python benchmarks/soak.py [SEED.keras --data FILE.npz | ZOO-NAME] [--mutants 5000]

Workers are shot with SIGKILL at random times. Half way the driver itself is shot, and the campaign
is resumed. Printed: mutants and findings before and after, memory of driver and workers at every
tenth of the way, workers replaced.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from outvote.run.process import resident_bytes
from outvote.store.folder import stored_result
from outvote.store.store import FILE


def count(folder: Path, table: str = "mutants") -> int:
    try:
        with sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True) as db:
            (found,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
            return int(found)
    except sqlite3.OperationalError:
        return 0


def children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


class Fire:
    """Watches one sitting of the campaign, and shoots."""

    def __init__(self, arguments: list[str], folder: Path, every: float, mutants: int) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", "outvote", "fuzz", *arguments])
        self._folder, self._every, self._mutants = folder, every, mutants
        self.shots = 0
        self._told = -1

    def until(self, wanted: int) -> None:
        """Go on until so many mutants are stored, or the campaign ends."""
        next_shot = time.monotonic() + self._every
        while self.process.poll() is None and count(self._folder) < wanted:
            time.sleep(0.5)
            self._tell()
            if time.monotonic() > next_shot and count(self._folder) > 1:
                next_shot = time.monotonic() + random.uniform(0.5, 1.5) * self._every
                self._shoot()

    def _shoot(self) -> None:
        workers = children(self.process.pid)
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(workers), signal.SIGKILL)
                self.shots += 1

    def _tell(self) -> None:
        tenth = count(self._folder) * 10 // self._mutants
        if tenth == self._told:
            return
        self._told = tenth
        workers = ", ".join(
            f"{resident_bytes(psutil.Process(p)) >> 20}" for p in children(self.process.pid)
        )
        driver = resident_bytes(psutil.Process(self.process.pid)) >> 20
        print(
            f"{count(self._folder)} mutants: driver {driver} MiB, workers {workers} MiB; "
            f"{count(self._folder, 'findings')} findings",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", nargs="?", default="lenet5", help="model file or zoo name")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--mutants", type=int, default=5000)
    parser.add_argument("--targets", default="tensorflow,jax,torch")
    parser.add_argument("--every", type=float, default=90.0, help="seconds between two shots")
    options = parser.parse_args()
    random.seed(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "campaign"
        budget = ["--budget", str(options.mutants), "--quiet"]
        data = ["--data", str(options.data)] if options.data else []
        first = [options.seed, *data, "--targets", options.targets, "--out", str(folder), *budget]
        before = Fire(first, folder, options.every, options.mutants)
        before.until(options.mutants // 2)
        before.process.send_signal(signal.SIGKILL)
        before.process.wait()
        stored = stored_result(folder)
        found = {finding["fingerprint"] for finding in stored["findings"]}
        print(f"driver shot at {stored['tested']} mutants, {len(found)} findings; resuming")
        after = Fire(["--resume", str(folder), *budget], folder, options.every, options.mutants)
        after.until(options.mutants + 10)
        after.process.wait()
        result = stored_result(folder)
        with sqlite3.connect(folder / FILE) as db:
            numbers = [n for (n,) in db.execute("SELECT number FROM mutants")]
        seeds = len(result["seeds"])
        print(
            f"{result['tested']} mutants in {result['seconds']:.0f} s; numbers without gap or "
            f"repetition: {sorted(numbers) == list(range(1, options.mutants + seeds + 1))}"
        )
        kept = found <= {finding["fingerprint"] for finding in result["findings"]}
        print(
            f"findings lost: {'none' if kept else 'SOME'}; {len(result['findings'])} in all; "
            f"{before.shots + after.shots} workers shot, {result['flaky']} deaths did not repeat, "
            f"{result['time']['recycled']} workers recycled"
        )


if __name__ == "__main__":
    main()
