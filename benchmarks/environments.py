"""What a second version of Keras costs: seconds until it is usable, megabytes on disk.

    python benchmarks/environments.py [VERSION ...]

Builds each version anew in an empty cache folder, with pip's own cache as it is. Then starts it on
one backend and runs a layer, once with files that Python has not compiled yet and once more; for
comparison, the same with the installed version. In brackets: seconds of processor time.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial

from outvote.commands.targets.job import HealthJob
from outvote.commands.targets.run import health
from outvote.targets.choose import choose, known_targets
from outvote.targets.environments.provide import provide
from outvote.targets.environments.store import EnvironmentStore

VERSIONS = ("3.8.0", "3.9.0", "3.14.1")
BACKEND = "jax"


def main() -> None:
    versions = sys.argv[1:] or VERSIONS
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        print(f"{'version':10} {'build':>16} {'first start':>16} {'later start':>16} {'MB':>6}")
        known = known_targets()
        later = [timed(partial(start, BACKEND)) for _ in range(2)]
        print(f"{'installed':10} {'':16} {later[0]:>16} {later[1]:>16}", flush=True)
        for version in versions:
            targets = choose([f"keras=={version}/{BACKEND}"], known)
            built = timed(partial(provide, targets))
            later = [timed(partial(start, targets[0].name)) for _ in range(2)]
            size = next(e.megabytes for e in EnvironmentStore().entries() if version in e.label)
            print(f"{version:10} {built:>16} {later[0]:>16} {later[1]:>16} {size:6.1f}", flush=True)


def timed(work: Callable[[], object]) -> str:
    """Seconds on the clock, and seconds of processor time: on a busy machine they part."""
    began, used = time.monotonic(), processor_seconds()
    work()
    return f"{time.monotonic() - began:.1f}s ({processor_seconds() - used:.1f}s)"


def processor_seconds() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(sum(resource.getrusage(kind)[:2]) for kind in kinds)


def start(name: str) -> None:
    """Start a worker of the target and let it compute a layer."""
    (target,) = choose([name], known_targets())
    (row,) = health(HealthJob((target,), named=True))
    assert row.state == "ok", row.remedy


if __name__ == "__main__":
    main()
