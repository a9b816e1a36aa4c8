"""The extras of the package, and environments that hold one of them and nothing else.

Such an environment is made of links to what is installed here, which takes a second where pip would
load and unpack gigabytes once more. What is linked is what the metadata ask for; that nothing of it
is missing is judged by pip, which installs the wheel with its extra and may look nowhere else.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, PathDistribution, distribution, distributions
from pathlib import Path
from zipfile import Path as ZipPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[Requirement]] = {
    extra: [Requirement(line) for line in lines]
    for extra, lines in _PROJECT["optional-dependencies"].items()
}


def included(extra: str) -> set[str]:
    """The extra, and those that it asks for."""
    inner = {name for r in EXTRAS[extra] if r.name == "outvote" for name in r.extras}
    return {extra}.union(*(included(name) for name in inner))


def environment(wheel: Path, extras: set[str], folder: Path) -> Path:
    """The interpreter of a new environment of outvote with these extras."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    for found in _needed(wheel, extras):
        _link(found, site)
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "--quiet",
        "install",
        "--no-compile",
    ]
    named = f"{wheel}[{','.join(sorted(extras))}]"
    done = subprocess.run([*command, "--no-index", named], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return python


def _needed(wheel: Path, extras: set[str]) -> list[Distribution]:
    """What the wheel asks for with these extras, and what that asks for."""
    info = next(path for path in ZipPath(wheel).iterdir() if path.name.endswith(".dist-info"))
    found: dict[str, Distribution] = {"outvote": PathDistribution(info)}
    todo, seen = [("outvote", extra) for extra in ("", *extras)], set[tuple[str, str]]()
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for requirement in _asked(found[name], extra):
            other = canonicalize_name(requirement.name)
            found.setdefault(other, distribution(other))
            todo += [(other, extra) for extra in ("", *requirement.extras)]
    return [held for name, held in found.items() if name != "outvote"]


def _asked(of: Distribution, extra: str) -> Iterator[Requirement]:
    for requirement in map(Requirement, of.requires or []):
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


@cache
def _owners() -> Counter[str]:
    """How many of the installed distributions have files under a name of the top."""
    return Counter(
        top for held in distributions() for top in {f.parts[0] for f in held.files or []}
    )


def _link(installed: Distribution, site: Path) -> None:
    """Its folders; what it shares with other distributions, file by file."""
    names = set()
    for file in installed.files or []:
        names.add(file.parts[0] if _owners()[file.parts[0]] == 1 else str(file))
    for name in names:
        if not name.startswith(".."):  # those are scripts
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).symlink_to(str(installed.locate_file(name)))
