"""Collects what campaigns found in the installed releases: docs/findings.md and its scripts.

    python benchmarks/live_findings.py CAMPAIGN... [--run] [--write] [--more]

Findings of several campaigns (and checks) are merged by fingerprint, and told by their causes: the
place in the library, or what benchmarks/findings_notes.toml says is one, with since when and what
upstream knows of it. `--run` runs each script, on the accused, which must fail, and on another
target, which must not; where nobody is accused, on all: one must fail and one must not. What does
not show is dropped. `--write` puts the scripts into docs/findings/ and the tables into
docs/findings.md; with `--more` only causes that are not on the page yet, into a table of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import findings_page
from outvote.core.causes import causes_of

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "findings.md"
FOLDER = ROOT / "docs" / "findings"
NOTES = Path(__file__).with_name("findings_notes.toml")
MARK = Path(__file__).name
MORE = f"more of {MARK}"
# Layers that are given whole numbers: ids, or images.
OF_IDS = ("CategoryEncoding", "Embedding", "Hashing", "IntegerLookup", "Discretization")
OF_IMAGES = ("ContrastLimitedAdaptiveHistogramEqualization", "AutoContrast", "Equalization",
             "Resizing", "CenterCrop", "Rescaling")  # fmt: skip
LONGEST = 45  # lines of a script
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
    parser.add_argument("--more", action="store_true", help="only what is not on the page yet")
    options = parser.parse_args()
    found = collect(options.campaigns)
    if options.run:
        found = showing(found)
    rows = untold(found) if options.more else tables(found)
    print(rows)
    bugs = sum(live.data["triage"] == "bug" for live in found)
    told = causes([live for live in found if not wish_of(live)])
    wishes = sum(map(bool, map(wish_of, found)))
    print(f"{len(found)} findings, {bugs} of them bugs; {wishes} wishes, {len(told)} other causes")
    if options.write:
        named = re.findall(r"\(findings/([\w-]+)\.py\)", rows)
        scripts = {live.name: live.script for live in found if live.name in named}
        findings_page.write(PAGE, MORE if options.more else MARK, rows, FOLDER, scripts)


def collect(campaigns: Sequence[Path]) -> list[Live]:
    found: dict[str, Live] = {}
    for folder in campaigns:
        for data in json.loads((folder / "result.json").read_text())["findings"]:
            if not data["repro"] or data["kind"] not in TITLES or not data["minimal"]:
                continue
            live = Live(data, (folder / data["repro"]).absolute(), data.get("count", 1))
            text = live.script.read_text()
            if "arrays.npz" in text or len(text.splitlines()) > LONGEST:  # too large to be read
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
class Note:
    """What a person has found out about a cause."""

    who: str  # who is accused, as the row says; empty: anyone
    layers: str  # kinds of layers, a pattern
    symptoms: tuple[str, ...]
    code: str = ""  # what the layer's code must hold, a pattern
    cause: str = ""  # findings of one such name are one cause
    says: str = ""  # a maintainer's summary
    since: str = ""
    upstream: str = ""

    def covers(self, live: Live) -> bool:
        who = live.data["accused"] or "nobody"
        return (
            self.who in ("", who)
            and re.fullmatch(self.layers, live.layer_kind) is not None
            and re.search(self.code, live.code) is not None
            and (not self.symptoms or live.data["symptom"] in self.symptoms)
        )


NO_NOTE = Note("", "", ())


def notes() -> list[Note]:
    told = tomllib.loads(NOTES.read_text(encoding="utf-8")).get("note", [])
    return [Note(**{"who": "", "layers": ".*", **one, "symptoms": tuple(one.get("symptoms", ()))})
            for one in told]  # fmt: skip


@dataclass(frozen=True)
class CauseRow:
    """One row: a cause, told by its best finding."""

    first: Live
    others: tuple[Live, ...]
    note: Note

    @property
    def who(self) -> Sequence[str]:
        found: Sequence[str] = self.first.data["targets"]
        return found

    @property
    def where(self) -> str:
        place = self.first.data["place"]
        return f"`{place['function']}`, {place['file']}:{place['line']}" if place else ""

    @property
    def known_by(self) -> list[str]:
        """By what it is the same as another: the place, a person's words, else the layer."""
        return list(filter(None, (self.where, self.note.says))) or [self.first.layer_kind]

    @property
    def text(self) -> str:
        kinds = {live.layer_kind for live in self.others} - {self.first.layer_kind}
        more = f", also {', '.join(f'`{kind}`' for kind in sorted(kinds))}" if kinds else ""
        cells = (
            f"[`{self.first.code}`](findings/{self.first.name}.py){more}",
            ", ".join(self.who),
            self.note.says or what(self.first.data),
            self.first.data["triage"],
            self.where or reading(self.first.data),
            self.note.since,
            self.note.upstream or "not looked up",
        )
        return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def wish_of(live: Live) -> str:
    """What Keras does not promise: integers for floats, float64 where it narrows by design."""
    text = live.script.read_text(encoding="utf-8")
    if "dtype='float64'" in text or 'dtype="float64"' in text:
        return "float64, which Keras narrows where it is not the default type"
    read = re.findall(r"^x\d+ = .*\"(u?int\d+)\"\)", text, re.M)
    if read and live.layer_kind not in (*OF_IDS, *OF_IMAGES):
        return "integers, where floats are documented"
    return ""


def causes(found: Sequence[Live]) -> list[CauseRow]:
    """Findings of one cause as one row, the most harmful first."""
    known = notes()
    by_name = {live.data["fingerprint"]: live for live in found}
    named: list[dict[str, Any]] = []
    kept: dict[str, Note] = {}
    for live in found:
        note = next((note for note in known if note.covers(live)), NO_NOTE)
        kept[live.data["fingerprint"]] = note
        name = note.cause if note.cause or not wish_of(live) else "wish"  # one for each who errs
        place = {"function": name, "file": ""} if name else live.data["place"]
        named.append({**live.data, "place": place})
    rows = []
    for cause in causes_of(named):
        first = by_name[cause["told_by"]]
        others = tuple(by_name[name] for name in cause["findings"] if name != cause["told_by"])
        rows.append(CauseRow(first, others, kept[cause["told_by"]]))
    return rows


HEAD = """\
| layer | who | what | verdict | where, or who says so | since | upstream |
|---|---|---|---|---|---|---|"""


def tables(found: Sequence[Live]) -> str:
    """Causes that a maintainer would mend, then those that are wishes."""
    wishes = [live for live in found if wish_of(live)]
    bugs = [live for live in found if not wish_of(live)]
    parts = ["\n".join(["## Causes", "", HEAD, *(row.text for row in causes(bugs))])]
    for wish in dict.fromkeys(map(wish_of, wishes)):
        rows = causes([live for live in wishes if wish_of(live) == wish])
        parts.append("\n".join([f"## Wishes: {wish}", "", HEAD, *(row.text for row in rows)]))
    return "\n\n".join(parts)


def untold(found: Sequence[Live]) -> str:
    """Causes that no other table of the page tells of one of those who are named."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(f"<!-- begin: {MORE} -->")
    page = before + rest.partition(f"<!-- end: {MORE} -->")[2]
    told: set[tuple[str, str]] = set()
    for line in page.splitlines():
        row = re.match(r"\| \[`(\w+)", line)
        cells = line.strip("| ").split(" | ") if row else []
        told |= {(who, part) for who in ", ".join(cells[1:2]).split(", ")
                 for part in (row[1] if row else "", *cells[2:])}  # fmt: skip
    rows = causes([live for live in found if not wish_of(live)])
    new = [row.text for row in rows
           if not any((who, part) in told for who in row.who for part in row.known_by)]  # fmt: skip
    return "\n".join([HEAD, *new])


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
