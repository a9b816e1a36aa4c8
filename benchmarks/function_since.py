"""Since which release of Keras a function stands as it does in the newest one that is named.

    python benchmarks/function_since.py keras/src/backend/torch/nn.py:average_pool FILE:NAME...

Wheels are fetched by pip, nothing is installed or run: the text of the function is compared,
without its layout. A fault may be older than the text, or lie in what the function calls.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

RELEASES = ("3.0.5", "3.3.3", "3.4.1", "3.5.0", "3.6.0", "3.7.0", "3.8.0", "3.9.2", "3.10.0",
            "3.11.3", "3.12.0", "3.13.2", "3.14.1", "3.15.1")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("functions", nargs="+", metavar="FILE:NAME")
    parser.add_argument("--releases", default=",".join(RELEASES))
    options = parser.parse_args()
    releases = options.releases.split(",")
    with tempfile.TemporaryDirectory() as folder:
        wheels = [fetched(release, Path(folder)) for release in releases]
        for wanted in options.functions:
            file, _, name = wanted.rpartition(":")
            texts = [text_of(wheel, file, name) for wheel in wheels]
            same = [text == texts[-1] for text in texts]
            first = len(same) - next((n for n, s in enumerate(reversed(same)) if not s), len(same))
            told = f"as it stands since {releases[first]}" if texts[-1] else "not there any more"
            print(f"{wanted}: {told}", flush=True)


def fetched(release: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run([*command, "--dest", str(folder), f"keras=={release}"], check=True)
    (wheel,) = folder.glob(f"keras-{release}-*.whl")
    return wheel


def text_of(wheel: Path, file: str, name: str) -> str | None:
    """The function or class of that name, as a tree without positions."""
    with zipfile.ZipFile(wheel) as archive:
        if file not in archive.namelist():
            return None
        tree = ast.parse(archive.read(file))
    kinds = (ast.FunctionDef, ast.ClassDef)
    found = (node for node in ast.walk(tree) if isinstance(node, kinds) and node.name == name)
    return next((ast.dump(node) for node in found), None)


if __name__ == "__main__":
    main()
