"""Bugs of released Keras versions, found by campaigns: which, how soon, and does the proof hold?

    python benchmarks/real_bugs_campaign.py --minutes 15 --seeds 0,1,2
    python benchmarks/real_bugs_campaign.py --versions 3.3.3,3.14.1 --minutes 5

One campaign per bad version and seed (benchmarks/real_bugs.py lists the bugs), with the same
command for all: `fuzz --strategy layers`, and the same targets. It ends early once all bugs of its
version are found; the scripts that are run meanwhile to see that are part of its time. A bug counts
as found when a finding names its kind of layer and one of its backends, and its repro.py exits 1
there in the bad version and 0 in the one that mends the bug: another fault of the same layer does
not count. For live bugs there is no other version to ask: the finding has to have the parameters
that they need. Who is accused, which may be nobody, and the cause it is told under are printed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.progress import Progress
from outvote.commands.fuzz.run import start
from outvote.core.target import Target
from outvote.dialects.keras.zoo.seeds import seed_file
from outvote.store.folder import stored_result
from outvote.targets.choose import choose, known_targets
from outvote.targets.environments.provide import provide
from real_bugs import BUGS, Bug

# For all versions: every library once, with what some faults need: a graph, or no oneDNN.
TARGETS = ("tensorflow:graph", "tensorflow:no-onednn", "jax:jit", "torch", "numpy")
SEED = "tiny-number"  # the smallest: what is drawn stands alone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="per version (%(default)s)")
    parser.add_argument("--versions", default="", help="bad versions, or `installed`; default: all")
    parser.add_argument("--strategy", default="layers")
    parser.add_argument("--rules", default="FL,AGAIN", help="empty: all (%(default)s)")
    parser.add_argument("--targets", default=",".join(TARGETS), help="%(default)s")
    parser.add_argument("--out", type=Path, help="keep the campaigns there")
    parser.add_argument("--seeds", default="0", help="of chance, a campaign each (%(default)s)")
    options = parser.parse_args()
    # 0 is one of the classic libraries; what no single layer shows, this strategy does not try.
    wanted = [bug for bug in BUGS if bug.number and not bug.whole]
    versions = dict.fromkeys(bug.bad or "installed" for bug in wanted)
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.out or Path(scratch)
        seeds = (SeedFile(SEED, *seed_file(SEED)),)
        for version in versions:
            if options.versions and version not in options.versions.split(","):
                continue
            rows = [bug for bug in wanted if (bug.bad or "installed") == version]
            for seed in map(int, options.seeds.split(",")):
                out = folder / f"{version}-{seed}"
                found += campaign(rows, version, seeds, seed, out, options)
    hits = {number for number, at in found if at is not None}
    times = sum(at is not None for _, at in found)
    tried = {number for number, _ in found}
    print(f"found {len(hits)} of {len(tried)} bugs, in {times} of {len(found)} trials")


def campaign(
    rows: Sequence[Bug],
    version: str,
    seeds: tuple[SeedFile, ...],
    seed: int,
    out: Path,
    options: Any,
) -> list[tuple[int, float | None]]:
    job = FuzzJob(
        seeds,
        tuple(targets_of(version, options.targets.split(","))),
        strategy=options.strategy,
        rules=tuple(filter(None, options.rules.split(","))),
        budget=Budget(seconds=60 * options.minutes),
        seed=seed,
        inputs=2,
        confirm=0,
        minimise=6.0,
    )
    began = time.monotonic()
    hunt = Hunt(rows, out)
    result = start(job, out, hunt)
    hunt.look(result)
    seconds = time.monotonic() - began
    print(
        f"Keras {version}, seed {seed}: {result['tested']} mutants, "
        f"{60 * result['tested'] / seconds:.0f} a minute, {len(result['findings'])} "
        f"findings of {len(result['causes'])} causes, {seconds:.0f} s; {result['summary']}",
        flush=True,
    )
    return [told(bug, hunt.found.get(bug.number)) for bug in rows]


class Hunt:
    """Holds every new finding of a campaign against the bugs, and ends it when all are found."""

    def __init__(self, rows: Sequence[Bug], out: Path) -> None:
        self._rows, self._out = rows, out
        self._looked: set[tuple[int, str]] = set()
        self._findings = 0
        self.found: dict[int, dict[str, Any]] = {}

    def __call__(self, progress: Progress) -> None:
        if progress.findings == self._findings:
            return
        self._findings = progress.findings
        self.look(stored_result(self._out))
        if len(self.found) == len(self._rows):
            raise KeyboardInterrupt  # as a user ends a campaign who has seen enough

    def look(self, result: dict[str, Any]) -> None:
        for bug in self._rows:
            for finding in sorted(result["findings"], key=lambda one: one["first_at"]):
                key = (bug.number, finding["fingerprint"])
                if bug.number in self.found or key in self._looked or not likely(finding, bug):
                    continue
                self._looked.add(key)
                if not bug.fixed or proof_passes(finding, bug, self._out):
                    self.found[bug.number] = finding


def targets_of(version: str, names: Sequence[str]) -> list[Target]:
    wanted = names if version == "installed" else [f"keras=={version}/{name}" for name in names]
    return choose(wanted, known_targets())


def likely(finding: dict[str, Any], bug: Bug) -> bool:
    """Whether a finding names the layer of a bug, and one of its backends."""
    named = set(re.findall(r"layers\.(\w+)", bug.layer)) - {"Masking", "LSTM", "LSTMCell"}
    if finding["layer_kind"] not in named or not wrong_ones(finding, bug):
        return False
    return all((finding["config"] or {}).get(name) == value for name, value in bug.needs)


def told(bug: Bug, finding: dict[str, Any] | None) -> tuple[int, float | None]:
    if finding is None:
        print(f"  {bug.number:3} {bug.what:45} not found", flush=True)
        return bug.number, None
    what = ", ".join(str(finding[part]) for part in ("accused", "kind", "triage", "parameters"))
    fixed = f"proof passes in {bug.fixed}" if bug.fixed else "live"
    place = finding["place"]
    cause = f"{place['function']}, {place['file']}:{place['line']}" if place else "the layer"
    print(
        f"  {bug.number:3} {bug.what:45} {finding['first_at']:4.0f} s  {what}; {fixed}; "
        f"cause: {cause}",
        flush=True,
    )
    return bug.number, finding["first_at"]


def wrong_ones(finding: dict[str, Any], bug: Bug) -> list[str]:
    """The targets that a finding names, of the backends that the bug is in, in whatever mode."""
    backends = {name.partition(":")[0] for name in bug.wrong}
    names = [name.rpartition("/")[2] for name in finding["targets"]]
    return [name for name in names if name.partition(":")[0] in backends]


def proof_passes(finding: dict[str, Any], bug: Bug, out: Path) -> bool:
    """The script exits 1 in the bad version and 0 in the fixed one, on one that is named."""
    if not finding["repro"]:
        return False
    script = out / finding["repro"]
    return any(
        exit_code(script, bug.bad, name) == 1 and exit_code(script, bug.fixed, name) == 0
        for name in wrong_ones(finding, bug)
    )


def exit_code(script: Path, version: str, backend: str) -> int:
    (target,) = provide(targets_of(version, [backend]))
    env = {
        **os.environ,
        "KERAS_BACKEND": target.backend,
        "PYTHONPATH": ":".join(map(str, target.path)),
        **({"TF_ENABLE_ONEDNN_OPTS": "0"} if target.mode == "no-onednn" else {}),
        **({"MODE": target.mode} if target.mode in ("jit", "graph", "xla", "predict") else {}),
    }
    command = [sys.executable, str(script)]
    return subprocess.run(command, env=env, capture_output=True, check=False).returncode


if __name__ == "__main__":
    main()
