"""What released libraries differ in when they train: the section of docs/findings.md, and scripts.

    python benchmarks/training_findings.py --cases 900 --seconds 600 CAMPAIGN... --write
    python benchmarks/training_findings.py --first 300 --cases 300 --seconds 200 --kept FOLDER
    python benchmarks/training_findings.py --cases 0 --kept FOLDER --write

Draws cases of losses, optimisers, regularisers and constraints, as `fuzz --oracle gradients` does
with its mutants, on TensorFlow, JAX and PyTorch, and adds what campaigns found in training. Each
script is run on every target; those that show nothing are dropped. `--write` puts the scripts into
docs/findings-training and the table into docs/findings.md. `--kept`: what is found is kept there,
with what each script ended with, so that a long run may be made in pieces.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import findings_page
from outvote.bench.bench import Bench
from outvote.bench.exercise import do
from outvote.campaign.stage_judge import StageJudge, place_of
from outvote.core.dialect import dialect
from outvote.core.train_protocol import ListStages
from outvote.dialects.keras.stage_script import stage_script
from outvote.dialects.keras.targets import BUILT_IN
from outvote.findings.finding import Finding
from outvote.judge.compare import Settings
from outvote.run.local import LocalPool

ROOT = Path(__file__).parents[1]
PAGE, FOLDER = ROOT / "docs" / "findings.md", ROOT / "docs" / "findings-training"
MARK = Path(__file__).name
NAMES = ("tensorflow", "jax", "torch")
TARGETS = {name: BUILT_IN[name] for name in NAMES}


@dataclass(frozen=True)
class Shown:
    """A finding of training with its script."""

    finding: dict[str, str]
    script: Path

    @property
    def name(self) -> str:
        who = self.finding["accused"] or "undecided"
        subject = "-".join(self.finding["subject"].lower().split())
        return f"{subject}-{who}-{self.finding['fingerprint'][:6]}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("campaigns", nargs="*", type=Path)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--kept", type=Path, help="a folder for what is found, piece by piece")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.cases)
    with tempfile.TemporaryDirectory() as folder:
        kept = options.kept or Path(folder) / "kept"
        kept.mkdir(parents=True, exist_ok=True)
        for one in (*drawn(numbers, options.seconds, Path(folder)), *told(options.campaigns)):
            keep(one, kept)
        found = sorted(map(read, kept.iterdir()), key=lambda one: one.name)
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            good = threads.map(shows, found)
            shown = [one for one, is_good in zip(found, good, strict=True) if is_good]
        rows = table(shown)
        print(rows)
        if options.write:
            findings_page.write(PAGE, MARK, rows, FOLDER, {one.name: one.script for one in shown})


def keep(one: Shown, kept: Path) -> None:
    """In a folder by its cause, the first of each."""
    folder = kept / one.finding["fingerprint"]
    if not folder.exists():
        folder.mkdir()
        script = folder / "repro.py"
        script.write_text(one.script.read_text(encoding="utf-8"), encoding="utf-8")
        (folder / "finding.json").write_text(json.dumps(one.finding), encoding="utf-8")


def read(folder: Path) -> Shown:
    return Shown(json.loads((folder / "finding.json").read_text()), folder / "repro.py")


def drawn(numbers: range, seconds: float, folder: Path) -> Iterator[Shown]:
    """Findings of cases that are drawn by their numbers."""
    if not numbers:
        return
    met: Counter[str] = Counter()
    began = time.monotonic()
    with LocalPool(list(TARGETS.values())) as pool:
        bench = Bench(pool, TARGETS, Settings())
        judge, listed = StageJudge(bench), pool.ask("tensorflow", ListStages()).reply
        stages = dialect("keras").stage_cases
        assert stages is not None
        for number in numbers:
            if time.monotonic() - began > seconds:
                break
            case = stages.drawn_stage(listed, pool.blobs, np.random.default_rng(number))
            done = do(bench, case.exercise, NAMES)
            met["cases"] += 1
            for part in case.parts:
                concluded = judge.judged(done, part, place_of(case, part), "keras")
                met["rounding"] += concluded.rounding
                met["again"] += len(concluded.again)
                for finding in concluded.findings:
                    met[finding.triage] += 1
                    print(f"{number} {finding.triage}: {finding.title}. {finding.reason}")
                    yield from _scripted(finding, pool, folder / f"{number}-{part}")
    print(", ".join(f"{count} {what}" for what, count in met.items()), flush=True)


def _scripted(finding: Finding, pool: LocalPool, folder: Path) -> Iterator[Shown]:
    folder.mkdir()
    stage = finding.stage
    assert stage is not None
    text = stage_script(finding, stage, TARGETS, pool.blobs, folder)
    if text is None or "arrays.npz" in text:  # too large to be read
        return
    (folder / "repro.py").write_text(text, encoding="utf-8")
    yield Shown(
        {
            "fingerprint": finding.fingerprint,
            "accused": finding.accused or "",
            "who": ", ".join(finding.targets),
            "stage": stage.name,
            "subject": stage.subject,
            "title": finding.title,
            "triage": finding.triage,
            "reason": finding.reason,
        },
        folder / "repro.py",
    )


def told(campaigns: Sequence[Path]) -> Iterator[Shown]:
    """What campaigns found in training."""
    for folder in campaigns:
        for data in json.loads((folder / "result.json").read_text())["findings"]:
            if data["stage"] is None or not data["repro"]:
                continue
            script = (folder / data["repro"]).absolute()
            if "arrays.npz" in script.read_text():
                continue
            subject = data["layer_kind"] or data["title"].partition(": ")[0].split()[-1]
            who = ", ".join(data["targets"])
            accused = data["accused"] or ""
            wanted = ("fingerprint", "stage", "title", "triage", "reason")
            told = {key: data[key] for key in wanted}
            yield Shown({**told, "accused": accused, "subject": subject, "who": who}, script)


def shows(one: Shown) -> bool:
    """Whether the script tells the accused from others, or, where nobody is, some from some."""
    told = one.script.with_name("codes.json")
    if not told.exists():
        told.write_text(json.dumps({name: _code(one.script, name) for name in NAMES}))
    codes = json.loads(told.read_text())
    accused = one.finding["accused"]
    good = 0 in codes.values() and (codes[accused] != 0 if accused else any(codes.values()))
    print(f"{one.name}: {'shows' if good else 'GONE'} {codes}", flush=True)
    return good


def _code(script: Path, name: str) -> int:
    env = {**os.environ, "KERAS_BACKEND": name, "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(
        [sys.executable, script], env=env, capture_output=True, check=False
    ).returncode


def table(found: Sequence[Shown]) -> str:
    rows = [
        f"| {one.finding['stage']} | [{one.finding['subject']}](findings-training/{one.name}.py) "
        f"| {one.finding['who']} | {_cell(one.finding['title'])} | {one.finding['triage']} "
        f"| {_cell(one.finding['reason'])} |"
        for one in found
    ]
    head = "| stage | of | who | what | verdict | why |\n|---|---|---|---|---|---|"
    return "\n".join([head, *rows])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*").replace("[", "\\[")


if __name__ == "__main__":
    main()
