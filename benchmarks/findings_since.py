"""Since which release of Keras each script of docs/findings.md shows what it shows today.

    python benchmarks/findings_since.py [docs/findings/NAME.py ...] [--releases 3.9.2,3.15.1]

Every script runs on the target that is named in its file, with Keras of each release (the wheel,
by pip) beside the libraries that are installed here: so it is Keras that is searched, not they, by
halves. What is printed is the first release that gives the same wrong numbers or the same error as
the newest, and the one before it with what that does: `ok`, other numbers, or an error, as where
the layer is not there yet.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from function_since import RELEASES, fetched
from outvote.judge.partings import wording

_FINDINGS = Path(__file__).parent.parent / "docs" / "findings"
_PATIENCE = 120.0  # seconds for one run
_LETTERS = 70


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scripts", nargs="*", type=Path, metavar="SCRIPT")
    parser.add_argument("--releases", default=",".join(RELEASES))
    options = parser.parse_args()
    releases = options.releases.split(",")
    with tempfile.TemporaryDirectory() as folder:
        wheels = [unpacked(release, Path(folder)) for release in releases]
        for script in options.scripts or sorted(_FINDINGS.glob("*.py")):
            env = environment(script)
            told = "on no target alone" if env is None else since(script, env, releases, wheels)
            print(f"{script.name}: {told}", flush=True)


def unpacked(release: str, folder: Path) -> Path:
    with zipfile.ZipFile(fetched(release, folder)) as wheel:
        wheel.extractall(folder / release)
    return folder / release


def environment(script: Path) -> dict[str, str] | None:
    """What the process of the target needs that the name of the script tells; None: nobody is."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    (table,) = (n for n in tree.body if isinstance(n, ast.Assign) and _is_named(n, "TARGETS"))
    found: dict[str, dict[str, str]] = eval(compile(ast.Expression(table.value), "", "eval"))
    _, accused, _ = script.stem.rsplit("-", 2)
    return found.get(accused)


def _is_named(node: ast.Assign, name: str) -> bool:
    return isinstance(node.targets[0], ast.Name) and node.targets[0].id == name


def since(
    script: Path, env: dict[str, str], releases: Sequence[str], wheels: Sequence[Path]
) -> str:
    @cache
    def state(number: int) -> str:
        return shown(script, env, wheels[number])

    newest = state(len(releases) - 1)
    first = earliest(lambda number: state(number) == newest, len(releases))
    before = f"; {releases[first - 1]}: {state(first - 1)}" if first else ""
    return f"since {releases[first]}{' or earlier' * (not first)}: {newest}{before}"


def earliest(holds: Callable[[int], bool], count: int) -> int:
    """The first number from which on it holds, if it does not hold, then does for good."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def shown(script: Path, env: dict[str, str], wheel: Path) -> str:
    """What the script says of one release: `ok`, wrong numbers, or the words of its error."""
    command = [sys.executable, str(script)]
    told = {**os.environ, **env, "PYTHONPATH": str(wheel)}
    try:
        done = subprocess.run(command, env=told, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return "does not end"
    if done.returncode < 0:
        return f"dies of signal {-done.returncode}"
    if done.returncode == 0:
        return "ok"
    printed = " ".join(done.stdout[done.stdout.find("WRONG:") :].split())
    return printed or wording((done.stderr.strip().splitlines() or [""])[-1])[:_LETTERS]


if __name__ == "__main__":
    main()
