"""Collects what campaigns found in ONNX' runtimes: docs/findings-onnx.md and its scripts.

    python benchmarks/onnx_findings.py CAMPAIGN... [--run] [--write]

A finding gets a row if `onnx_causes.toml` holds its cause, which a person has read against ONNX'
text; one row per cause, with the smallest script of each operator. `--run` runs every script, on
every target in a process of its own: the accused must be wrong there and another one right, or the
script is dropped. `--write` puts the scripts into docs/findings-onnx/ and the table into the page.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import findings_page

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "findings-onnx.md"
FOLDER = ROOT / "docs" / "findings-onnx"
MARK = Path(__file__).name
TEXT = "https://onnx.ai/onnx/operators/onnx__{}.html"
Cause = Mapping[str, Any]
Found = dict[str, Any]  # a finding of result.json, and the folder of its campaign


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("campaigns", nargs="+", type=Path)
    parser.add_argument("--run", action="store_true", help="run every script, drop what is gone")
    parser.add_argument("--write", action="store_true", help="write docs/findings-onnx")
    options = parser.parse_args()
    causes = tomllib.loads(Path(__file__).with_name("onnx_causes.toml").read_text())["cause"]
    found = [one for folder in options.campaigns for one in findings_of(folder)]
    rows = [(cause, smallest(cause, found)) for cause in causes]
    if options.run:
        rows = [(cause, [one for one in some if shows(one)]) for cause, some in rows]
    rows = [(cause, some) for cause, some in rows if some]
    table = "\n".join([
        "| who | operators, each with its script | what | ONNX' text | since |",
        "|---|---|---|---|---|",
        *(row_of(cause, some) for cause, some in rows),
    ])  # fmt: skip
    print(table)
    print(
        f"{len(rows)} causes, {sum(len(some) for _, some in rows)} scripts, {len(found)} findings"
    )
    if options.write:
        scripts = {name_of(one): Path(one["script"]) for _, some in rows for one in some}
        findings_page.write(PAGE, MARK, table, FOLDER, scripts)


def findings_of(folder: Path) -> list[Found]:
    """Bugs with a script that can be read."""
    told = json.loads((folder / "result.json").read_text(encoding="utf-8"))["findings"]
    usable = [one for one in told if one["triage"] == "bug" and one["repro"] and one["minimal"]]
    for one in usable:
        one["script"] = (folder / one["repro"]).absolute()
    return [one for one in usable if "arrays.npz" not in one["script"].read_text()]


def smallest(cause: Cause, found: Sequence[Found]) -> list[Found]:
    """Of each operator that shows the cause the finding with the fewest numbers."""
    best: dict[str, Found] = {}
    for one in found:
        kind = str(one["layer_kind"])
        fits = one["accused"] == cause["who"] and one["kind"] in cause["kinds"]
        if not fits or kind not in cause["operators"]:
            continue
        if kind not in best or one["minimal"]["numbers"] < best[kind]["minimal"]["numbers"]:
            best[kind] = one
    return list(best.values())


def shows(one: Found) -> bool:
    """Whether the script, alone, finds the accused wrong and another target right."""
    try:
        done = subprocess.run(
            [sys.executable, one["script"]], capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:  # as it must where a target hangs
        return bool(one["kind"] == "hang")
    told = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    right = [name for name, line in told.items() if " ok:" in line]
    good = done.returncode != 0 and bool(right) and one["accused"] not in right
    if not good:
        print(f"{name_of(one)}: GONE\n{done.stdout}{done.stderr[-500:]}", flush=True)
    return good


def name_of(one: Found) -> str:
    told = f"{one['layer_kind']}-{one['accused']}-{one['fingerprint'][:6]}".lower()
    return re.sub(r"[^a-z0-9-]", "-", told)


def row_of(cause: Cause, some: Sequence[Found]) -> str:
    scripts = ", ".join(f"[`{one['layer_kind']}`](findings-onnx/{name_of(one)}.py)" for one in some)
    links = ", ".join(f"[{one['layer_kind']}]({TEXT.format(one['layer_kind'])})" for one in some)
    cells = (cause["who"], scripts, cause["what"], links, cause.get("since", "not bisected"))
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
