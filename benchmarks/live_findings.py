"""Collects what campaigns found in the installed releases: docs/findings.md and its scripts.

    python benchmarks/live_findings.py CAMPAIGN... [--run] [--write]

Findings of several campaigns (and checks) are merged by fingerprint. `--run` runs each script, on
the accused, which must fail, and on another target, which must not; where nobody is accused, on
all: one must fail and one must not. What does not show is dropped. `--write` puts the scripts into
docs/findings/ and the tables into docs/findings.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "findings.md"
FOLDER = ROOT / "docs" / "findings"
BEGIN, END = "<!-- begin: live_findings.py -->", "<!-- end: live_findings.py -->"
TITLES = {
    "inconsistency": "Wrong values",
    "nan": "NaN",
    "shape": "Other shapes and types",
    "crash": "Errors and crashes",
    "hang": "Hangs",
}


@dataclass
class Live:
    """One finding with its script, of the campaign that proved it best."""

    data: dict[str, Any]
    script: Path
    times: int

    @property
    def name(self) -> str:
        who = self.data["accused"] or "undecided"
        kind = self.layer_kind.lower()
        return re.sub(r"[^a-z0-9-]", "-", f"{kind}-{who}-{self.data['fingerprint'][:6]}".lower())

    @property
    def layer_kind(self) -> str:
        found = re.search(r"keras\.layers\.(\w+)\(", self.script.read_text(encoding="utf-8"))
        return found.group(1) if found else str(self.data["layer_kind"])

    @property
    def code(self) -> str:
        """The layer as the script makes it."""
        found = re.search(r"= (keras\.layers\.\w+\(.*\))$", self.script.read_text(), re.MULTILINE)
        return found.group(1).removeprefix("keras.layers.") if found else self.layer_kind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("campaigns", nargs="+", type=Path)
    parser.add_argument("--run", action="store_true", help="run every script, drop what is gone")
    parser.add_argument("--write", action="store_true", help="write docs/findings")
    options = parser.parse_args()
    found = collect(options.campaigns)
    if options.run:
        found = [live for live in found if shows(live)]
    rows = tables(found)
    print(rows)
    bugs = sum(live.data["triage"] == "bug" for live in found)
    print(f"{len(found)} disagreements, {bugs} of them bugs")
    if options.write:
        write(found, rows)


def collect(campaigns: Sequence[Path]) -> list[Live]:
    found: dict[str, Live] = {}
    for folder in campaigns:
        for data in json.loads((folder / "result.json").read_text())["findings"]:
            if not data["repro"] or data["kind"] not in TITLES or not data["minimal"]:
                continue
            live = Live(data, folder / data["repro"], data.get("count", 1))
            if "arrays.npz" in live.script.read_text():  # too large to be read
                continue
            known = found.get(data["fingerprint"])
            if known is not None:
                live.times += known.times
            if known is None or _size(live) < _size(known):
                found[data["fingerprint"]] = live
            elif known is not None:
                known.times = live.times
    order = list(TITLES)
    return sorted(found.values(), key=lambda f: (order.index(f.data["kind"]), f.name))


def _size(live: Live) -> int:
    return int((live.data["minimal"] or {"numbers": 10**9})["numbers"])


def shows(live: Live) -> bool:
    """Whether the script tells the accused, or where nobody is, any target, from another."""
    began = time.monotonic()
    names = re.findall(
        r"'(\w+)'", live.script.read_text().partition("TARGETS = ")[2].split("\n")[0]
    )
    accused = live.data["accused"]
    if accused is None:
        codes = {name: exit_code(live.script, name) for name in names}
        good = len(set(codes.values())) > 1
    else:
        quick = ("numpy", "torch", "tensorflow", "openvino", "jax")
        other = next((n for n in quick if n in names and n not in live.data["targets"]), None)
        codes = {n: exit_code(live.script, n) for n in (accused, other) if n is not None}
        good = codes[accused] != 0 and other is not None and codes[other] == 0
    spent = time.monotonic() - began
    print(f"{live.name:60} {'shows' if good else f'GONE {codes}'} {spent:.0f} s", flush=True)
    return good


def exit_code(script: Path, backend: str) -> int:
    env = {**os.environ, "KERAS_BACKEND": backend}
    command = [sys.executable, str(script.absolute())]
    return subprocess.run(command, env=env, capture_output=True, check=False).returncode


def tables(found: Sequence[Live]) -> str:
    parts = []
    for kind, title in TITLES.items():
        rows = [row(live) for live in found if live.data["kind"] == kind]
        if rows:
            head = "| layer | who | what | verdict | our reading |\n|---|---|---|---|---|"
            parts.append("\n".join([f"## {title}", "", head, *rows]))
    return "\n\n".join(parts)


def row(live: Live) -> str:
    data = live.data
    who = ", ".join(data["targets"])
    what = {
        "inconsistency": f"{data['distance'] or 0:.2g} (relative)",
        "nan": data["title"].partition(",")[0].partition(" ")[2],
        "shape": data["title"].partition(" in ")[0].partition(" ")[2],
    }.get(data["kind"]) or _error(data["title"])
    cells = [f"[`{live.code}`](findings/{live.name}.py)", who, what, data["triage"], reading(data)]
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def _error(title: str) -> str:
    text = title.partition("': ")[2] or title
    return f"`{text[:90].replace('`', '')}`"


def reading(data: dict[str, Any]) -> str:
    """Which side is right, by what."""
    evidence = data["evidence"] or {}
    errors = evidence.get("errors") or {}
    if data["triage"] == "difference":
        return str(data["reason"]).partition(": ")[2].partition(". ")[0].partition(" (")[0]
    if data["accused"] is None:
        return f"not decided: {str(evidence.get('vote', '')).removeprefix('cannot be decided, ')}"
    right = [n for n, e in errors.items() if e is not None and e <= evidence["tolerance"]]
    if data["accused"] and right:
        return f"{', '.join(right)} give the result of {evidence['reference']}"
    return str(evidence.get("vote", "")).replace("independent implementations", "implementations")


def write(found: Sequence[Live], rows: str) -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for live in found:
        shutil.copy(live.script, FOLDER / f"{live.name}.py")
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{rows}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
