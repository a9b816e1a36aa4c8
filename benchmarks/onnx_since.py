"""Since which release each cause in docs/findings-onnx.md shows: its scripts in all releases.

    python benchmarks/onnx_since.py FOLDER            # print the table of releases
    python benchmarks/onnx_since.py FOLDER --write    # and the column of the page, and the causes

FOLDER holds what pip has put there, one folder a release, each alone or over what is installed:

    pip install --no-deps --target FOLDER/onnxruntime-1.20.1 onnxruntime==1.20.1

(with `numpy==1.26.4` for releases before NumPy 2; `onnx` with what it needs). A release has one
process, which imports the runtime once and divides for every script. What a release says it lacks
(an operator, an argument) is told apart from a wrong result or a failure by the words of its
error. `since` is the release from which on the script finds the runtime wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnx_findings import FOLDER as SCRIPTS
from onnx_findings import PAGE

PACKAGES = {"onnxruntime": "onnxruntime", "openvino:onnx": "openvino", "onnx-reference": "onnx"}
RUNTIMES = {**PACKAGES, "onnx-reference": "reference"}
CAUSES = Path(__file__).with_name("onnx_causes.toml")
_FIRST = "opencv 5.0.0.93, the first release with this engine"  # 4.14.0.94 has no ENGINE_NEW
SHOWN, GONE, UNABLE = "wrong", "right", "unable"
_RUN = """
import json, os, runpy, signal, sys, time
import numpy, onnx
if sys.argv[1] != "reference":
    __import__(sys.argv[1])
os.environ.update(RUNTIME=sys.argv[1], TARGET=sys.argv[2], LEVEL="ORT_DISABLE_ALL")
for path in sys.argv[3:]:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(writing, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(20)
        runpy.run_path(path, run_name="__main__")
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        text = told.read()
    print(json.dumps([path, text.strip(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]))
    sys.stdout.flush()
"""
# What a release says of an operator, an opset, an argument that it does not have.
_LACKS = re.compile(
    r"opset|not implemented|NotImplemented|NOT_IMPLEMENTED|not a registered|IR version|"
    r"has no attribute|No implementation|unexpected keyword|not supported|No registered|"
    r"ImportError|ModuleNotFoundError",
    re.IGNORECASE,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="write the page and the causes")
    options = parser.parse_args()
    told: dict[str, str] = {}
    for who, package in PACKAGES.items():
        scripts = sorted(SCRIPTS.glob(f"*-{who.replace(':', '-')}-*.py"))
        releases = sorted(_releases(options.folder, package), key=_order)
        seen = {v: ends_in(options.folder / f"{package}-{v}", who, scripts) for v in releases}
        for script in scripts:
            newest = _head(seen[releases[-1]][script.name][0])
            ends = {
                version: end_of(*found[script.name], newest) if script.name in found else UNABLE
                for version, found in seen.items()
            }
            told[script.name] = since(ends, package)
            print(f"{script.name:50} {told[script.name]:40} {_line(ends)}", flush=True)
    if options.write:
        write(told)


def _releases(folder: Path, package: str) -> list[str]:
    names = [path.name for path in folder.iterdir() if path.is_dir()]
    found = [re.fullmatch(rf"{package}-([\d.]+)", name) for name in names]
    return [match[1] for match in found if match]


def _order(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _line(ends: Mapping[str, str]) -> str:
    letters = {SHOWN: "X", GONE: ".", UNABLE: "-"}
    return "".join(letters[end] for end in ends.values())


def ends_in(release: Path, who: str, scripts: Sequence[Path]) -> dict[str, tuple[str, int]]:
    """What every script says of one release, and its exit code."""
    env = {**os.environ, "PYTHONPATH": str(release)}
    command = [sys.executable, "-c", _RUN, RUNTIMES[who], who, *map(str, scripts)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{release.name}: {done.stderr.strip().splitlines()[-1:]}", flush=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {Path(path).name: (text, code) for path, text, code in lines}


def end_of(text: str, code: int, newest: str) -> str:
    """Whether a release is wrong: as the newest is, or otherwise, but for what it says it lacks."""
    if code == 0:
        return GONE
    return UNABLE if _LACKS.search(text) and _head(text) != newest else SHOWN


def _head(text: str) -> str:
    return "".join(filter(str.isalpha, text))[:40]


def since(ends: Mapping[str, str], package: str) -> str:
    """The first release of those without a right one behind them, as far as they can be run."""
    able = {version: end for version, end in ends.items() if end != UNABLE}
    if not able or list(able.values())[-1] != SHOWN:
        return "not shown by the releases tried"
    versions = list(able)
    right = [place for place, end in enumerate(able.values()) if end == GONE]
    if not right:
        first = versions[0]
        before = "" if first != next(iter(ends)) else " or before"
        return f"{package} {first}{before}"
    return f"{package} {versions[right[-1] + 1]} ({versions[right[-1]]} is right)"


def write(told: Mapping[str, str]) -> None:
    """The last column of the page, and `since` of the causes, by who and what a row says."""
    page, causes = PAGE.read_text(encoding="utf-8"), CAUSES.read_text(encoding="utf-8")
    for row in re.findall(r"^\| .*findings-onnx/.*$", page, flags=re.MULTILINE):
        names = re.findall(r"findings-onnx/([\w-]+\.py)", row)
        who, _, what, *_ = row.removeprefix("| ").split(" | ")
        known = dict.fromkeys(told[name] for name in names if name in told)
        text = "; ".join(known) or (_FIRST if who == "opencv" else "")
        if text:
            head = row.rsplit(" | ", 1)[0]
            page = page.replace(row, f"{head} | {text} |")
            causes = _with_since(causes, who, what, text)
    PAGE.write_text(page, encoding="utf-8")
    CAUSES.write_text(causes, encoding="utf-8")


def _with_since(causes: str, who: str, what: str, text: str) -> str:
    """The causes with one line more, or another one, in the block of that cause."""
    blocks = causes.split("[[cause]]\n")
    for place, block in enumerate(blocks):
        if f'who = "{who}"\n' in block and f'what = "{what}"\n' in block:
            bare = re.sub(r"^since = .*\n", "", block, flags=re.MULTILINE)
            line = f'what = "{what}"\n'
            blocks[place] = bare.replace(line, f'{line}since = "{text}"\n')
    return "[[cause]]\n".join(blocks)


if __name__ == "__main__":
    main()
