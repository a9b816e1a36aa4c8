"""What a second version of Keras costs: seconds until it is usable, megabytes on disk.

    python benchmarks/environments.py [VERSION ...]

Builds each version anew in an empty cache folder, with pip's own cache as it is. Then starts it on
one backend and runs a layer, once with files that Python has not compiled yet and once more; for
comparison, the same with the installed version.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from outvote.checking import silent
from outvote.environments.provide import provide
from outvote.environments.store import Store
from outvote.health import describe_targets
from outvote.targets import choose, known_targets

VERSIONS = ("3.8.0", "3.9.0", "3.14.1")
BACKEND = "jax"


def main() -> None:
    versions = sys.argv[1:] or VERSIONS
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        print(f"{'version':10} {'build':>8} {'1st start':>10} {'2nd start':>10} {'MB':>6}")
        print(
            f"{'installed':10} {'':8} {usable(BACKEND):9.1f}s {usable(BACKEND):9.1f}s", flush=True
        )
        for version in versions:
            targets = choose([f"keras=={version}/{BACKEND}"], known_targets({}, Path()))
            began = time.monotonic()
            provide(targets)
            built = time.monotonic() - began
            first, later = usable(targets[0].name), usable(targets[0].name)
            size = next(e.megabytes for e in Store().entries() if version in e.label)
            print(f"{version:10} {built:7.1f}s {first:9.1f}s {later:9.1f}s {size:6.1f}", flush=True)


def usable(name: str) -> float:
    """Seconds until a worker of the target has started and computed."""
    began = time.monotonic()
    (target,) = choose([name], known_targets({}, Path()))
    (row,) = describe_targets({name: target}, silent)
    assert row.state == "ok", row.remedy
    return time.monotonic() - began


if __name__ == "__main__":
    main()
