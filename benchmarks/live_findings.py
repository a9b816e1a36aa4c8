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
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import findings_page
from outvote.findings.finding import head_of

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "findings.md"
FOLDER = ROOT / "docs" / "findings"
MARK = Path(__file__).name
QUICKEST = ("numpy", "torch", "tensorflow", "openvino", "jax")
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
        found = showing(found)
    rows = tables({kind: _rows(found, kind) for kind in TITLES})
    print(rows)
    bugs = sum(live.data["triage"] == "bug" for live in found)
    print(f"{len(found)} disagreements, {bugs} of them bugs")
    if options.write:
        scripts = {live.name: live.script for live in found}
        findings_page.write(PAGE, MARK, rows, FOLDER, scripts)


def _rows(found: Sequence[Live], kind: str) -> list[Row]:
    return [row_of(live) for live in found if live.data["kind"] == kind]


def collect(campaigns: Sequence[Path]) -> list[Live]:
    found: dict[str, Live] = {}
    for folder in campaigns:
        for data in json.loads((folder / "result.json").read_text())["findings"]:
            if not data["repro"] or data["kind"] not in TITLES or not data["minimal"]:
                continue
            live = Live(data, (folder / data["repro"]).absolute(), data.get("count", 1))
            if "arrays.npz" in live.script.read_text():  # too large to be read
                continue
            known = found.get(data["fingerprint"])
            if known is not None:
                live.times += known.times
            if known is None or _size(live) < _size(known):
                found[data["fingerprint"]] = live
            elif known is not None:
                known.times = live.times
    decided = {(live.data["kind"], live.code) for live in found.values() if live.data["accused"]}
    for key, live in list(found.items()):  # who takes part is part of an undecided one's identity
        told = (live.data["kind"], live.code)
        if live.data["accused"] is None and told in decided:
            del found[key]
        decided.add(told)
    order = list(TITLES)
    return sorted(found.values(), key=lambda f: (order.index(f.data["kind"]), f.name))


def _size(live: Live) -> int:
    return int((live.data["minimal"] or {"numbers": 10**9})["numbers"])


def showing(found: Sequence[Live]) -> list[Live]:
    """Those whose script tells the accused, or where nobody is, any target, from another."""
    wanted: dict[str, dict[Path, Live]] = {}
    for live in found:
        for name in asked(live):
            wanted.setdefault(name, {})[live.script] = live
    codes: dict[Path, dict[str, int]] = {}
    for name, scripts in wanted.items():
        began = time.monotonic()
        for script, code in exit_codes(list(scripts), name):
            codes.setdefault(script, {})[name] = code
        print(f"{name}: {len(scripts)} scripts, {time.monotonic() - began:.0f} s", flush=True)
    return [live for live in found if tells(live, codes[live.script])]


def asked(live: Live) -> list[str]:
    """The targets to run a script on: the accused and a quick one that is right, else all."""
    first = live.script.read_text().partition("TARGETS = ")[2].partition("EXPECTED")[0]
    names = [n for n in QUICKEST if f"'{n}'" in first]
    accused = live.data["accused"]
    right = [n for n in names if n not in live.data["targets"]]
    return names if accused is None else [accused, *right[:1]]


def tells(live: Live, codes: dict[str, int]) -> bool:
    accused = live.data["accused"]
    others = [code for name, code in codes.items() if name != accused]
    good = 0 in others and (codes[accused] != 0 if accused else any(others))
    if not good:
        print(f"{live.name}: GONE {codes}", flush=True)
    return good


def exit_codes(scripts: Sequence[Path], backend: str) -> Iterator[tuple[Path, int]]:
    """Each script's exit code; one process runs them all, and a new one goes on if it dies."""
    left = [script.absolute() for script in scripts]
    env = {**os.environ, "KERAS_BACKEND": backend}
    while left:
        wide = "JAX_ENABLE_X64" in left[0].read_text()
        some = [s for s in left if ("JAX_ENABLE_X64" in s.read_text()) == wide]
        more = {"JAX_ENABLE_X64": "1"} if wide else {}
        command = [sys.executable, "-c", _RUN_ALL, *map(str, some)]
        done = subprocess.run(
            command, env={**env, **more}, capture_output=True, text=True, check=False
        )
        told = [int(line[1:]) for line in done.stdout.splitlines() if line.startswith("=")]
        if len(told) < len(some):  # it died of this one
            told.append(done.returncode)
        for script, code in zip(some, told, strict=False):
            left.remove(script)
            yield script, code


_RUN_ALL = """
import runpy, sys
for script in sys.argv[1:]:
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        print(f"\\n={int(end.code or 0)}", flush=True)
"""


@dataclass(frozen=True)
class Row:
    """One row of a table: layers on which the same targets do the same."""

    layers: tuple[str, ...]  # each with the link to its script
    who: str
    what: str
    verdict: str
    readings: tuple[str, ...]

    @property
    def cause(self) -> tuple[str, str, str]:
        """What is told once. In a message, which is quoted, numbers and shapes vary."""
        is_message = self.what.startswith("`")
        return self.who, head_of(self.what) if is_message else self.what, self.verdict

    def beside(self, other: Row) -> Row:
        readings = dict.fromkeys((*self.readings, *other.readings))
        return replace(self, layers=self.layers + other.layers, readings=tuple(readings))

    @property
    def text(self) -> str:
        layers, readings = ", ".join(self.layers), "; ".join(self.readings)
        cells = (layers, self.who, self.what, self.verdict, readings)
        return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def tables(rows: Mapping[str, Sequence[Row]]) -> str:
    """By kind. What a side gives or complains of tells a cause; how far numbers are off, not."""
    parts = []
    for kind, title in TITLES.items():
        found = rows.get(kind, ())
        if found:
            told = merged(found) if kind not in ("inconsistency", "nan") else found
            head = "| layer | who | what | verdict | our reading |\n|---|---|---|---|---|"
            parts.append("\n".join([f"## {title}", "", head, *(row.text for row in told)]))
    return "\n\n".join(parts)


def merged(rows: Sequence[Row]) -> list[Row]:
    """Rows of one cause as one, where its first layer stood."""
    found: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        found[row.cause] = found[row.cause].beside(row) if row.cause in found else row
    return list(found.values())


def row_of(live: Live) -> Row:
    data = live.data
    layer = f"[`{live.code}`](findings/{live.name}.py)"
    return Row((layer,), ", ".join(data["targets"]), what(data), data["triage"], (reading(data),))


def what(data: dict[str, Any]) -> str:
    """What the accused does, or what each side gives."""
    title = str(data["title"])
    told = title.partition("': ")[2]
    if data["accused"] is None:
        return _quoted(told)
    return {
        "inconsistency": f"{data['distance']:.2g} (relative)" if data["distance"] else "infinities",
        "nan": title.partition(",")[0].partition(" ")[2],
        "shape": title.partition(" in ")[0].partition(" ")[2],
    }.get(data["kind"]) or f"`{_quoted(told or title)[:90]}`"


def _quoted(text: str) -> str:
    return text.replace("`", "")


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


if __name__ == "__main__":
    main()
