"""The oldest versions that pyproject.toml allows: `make floor` tests with them.

floor.py constraints   what outvote itself needs, for pip
floor.py targets       what each library under test needs, as names of targets
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
# torch is left out: builds without CUDA, gigabytes of it, come with one release only.
TARGETS = {"tensorflow": "tensorflow", "jax": "jax", "openvino": "openvino", "onnx": "onnxruntime"}


def oldest(lines: list[str]) -> list[str]:
    """The lower bound of each requirement that applies here, as a pin; of two the higher one."""
    bounds: dict[str, Version] = {}
    for requirement in map(Requirement, lines):
        if requirement.marker is None or requirement.marker.evaluate():
            (bound,) = (Version(s.version) for s in requirement.specifier if s.operator == ">=")
            bounds[requirement.name] = max(bound, bounds.get(requirement.name, bound))
    return [f"{name}=={bound}" for name, bound in bounds.items()]


def started(names: list[str]) -> bool:
    """Whether every target does its small sum; built into environments of their own."""
    from outvote.commands.targets.job import HealthJob
    from outvote.commands.targets.run import health
    from outvote.targets.choose import find_target, known_targets

    known = known_targets()
    rows = health(HealthJob(tuple(find_target(name, known) for name in names), named=True))
    for row in rows:
        print(row.name, row.state, row.versions or row.remedy, sep="  ")
    return all(row.state == "ok" for row in rows)


def main(what: str) -> int:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    if what == "constraints":
        joint = [line for extra in ("onnx", "openvino", "jax", "serve") for line in extras[extra]]
        print("\n".join(oldest([*project["dependencies"], *joint])))
        return 0
    names = [f"{','.join(oldest(extras[extra]))}/{name}" for extra, name in TARGETS.items()]
    return 0 if started(names) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
