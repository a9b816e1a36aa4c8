"""Writes `findings/<fingerprint>/`: the one-layer model, its input, a script that proves it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from outvote.core.cuts import one_layer
from outvote.core.dialect import dialect
from outvote.core.files import named_inputs, save_npz
from outvote.core.outputs import Outputs
from outvote.core.protocol import Hello, Save
from outvote.core.specimen import Specimen
from outvote.core.target import Run, Target
from outvote.findings.answers import save_answers
from outvote.findings.finding import Finding, Stage
from outvote.findings.issue_text import issue_text
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled


def write_evidence(
    pool: Pool,
    findings: Sequence[Finding],
    targets: Mapping[str, Target],
    hellos: Mapping[str, Run[Hello]],
    out: Path,
) -> dict[str, str]:
    """A folder per finding; returns the repro script of each fingerprint that has one."""
    repros = {}
    _remove_old(out / "findings")
    for finding in findings:
        script = write_finding(pool, finding, targets, hellos, out)
        if script is not None:
            repros[finding.fingerprint] = script
    return repros


def write_finding(
    pool: Pool,
    finding: Finding,
    targets: Mapping[str, Target],
    hellos: Mapping[str, Run[Hello]],
    out: Path,
) -> str | None:
    """The folder of one finding; returns its repro script, from `out`, if it has one."""
    folder = out / "findings" / finding.fingerprint
    folder.mkdir(parents=True, exist_ok=True)
    if finding.stage is not None:
        return _write_stage(pool, finding, finding.stage, targets, hellos, out)
    specimen = _specimen(finding)
    wing = dialect(finding.dialect)
    text, short = _scripts(pool, finding, targets, folder)
    (folder / "report.md").write_text(issue_text(finding, hellos, text, short), encoding="utf-8")
    if answers := _answers(finding):
        save_answers(folder, *answers)
    if specimen is None:
        return None
    save_npz(folder / "inputs.npz", named_inputs(specimen.inputs))
    path = folder / wing.files.CASE_FILE
    saved = ask_settled(pool, _writer(finding, pool), Save(model=specimen.model))
    if saved.ok:
        pool.blobs.copy_file(saved.reply.file.digest, path)
    if not saved.ok:
        (folder / "not-saved.txt").write_text(f"{saved.message}\n{saved.detail}")
    elif text is None and finding.fault is not None and wing.script is not None:
        text = wing.script.script_of_file(finding.fault, targets, folder)
    if text is None:
        return None
    (folder / "repro.py").write_text(text, encoding="utf-8")
    return str((folder / "repro.py").relative_to(out))


def _scripts(
    pool: Pool, finding: Finding, targets: Mapping[str, Target], folder: Path
) -> tuple[str | None, str | None]:
    """The one that judges, and the one that shows; of a relation the first shows both ways."""
    wing = dialect(finding.dialect)
    if finding.relation:
        writer = wing.relation_script
        shown = writer.relation_script(finding, targets, pool, folder) if writer else None
        return shown, None
    if wing.script is None:
        return None, None
    text = wing.script.script(finding, targets, pool, folder)
    return text, wing.script.short(finding, targets, pool)


def _write_stage(
    pool: Pool,
    finding: Finding,
    stage: Stage,
    targets: Mapping[str, Target],
    hellos: Mapping[str, Run[Hello]],
    out: Path,
) -> str | None:
    """The folder of a finding in training."""
    folder = out / "findings" / finding.fingerprint
    writer = dialect(finding.dialect).stage_script
    text = writer.stage_script(finding, stage, targets, pool.blobs, folder) if writer else None
    (folder / "report.md").write_text(issue_text(finding, hellos, text), encoding="utf-8")
    save_answers(folder, {n: told.outputs for n, told in stage.told.items()}, stage.expected)
    if text is None:
        return None
    (folder / "repro.py").write_text(text, encoding="utf-8")
    return str((folder / "repro.py").relative_to(out))


def _specimen(finding: Finding) -> Specimen | None:
    """What the folder keeps: the smallest there is."""
    if finding.proof is not None:
        return finding.proof.specimen
    if finding.fault is None or not finding.fault.given:
        return None
    model, arrays = one_layer(finding.dialect, finding.fault.layer, finding.fault.given)
    return Specimen(model, tuple(arrays))


def _answers(finding: Finding) -> tuple[Mapping[str, Outputs], Outputs | None] | None:
    """What each target gave for what the folder keeps, and the exact result where it is known."""
    if finding.proof is not None:
        return finding.proof.observed.outputs, finding.proof.expected
    if finding.fault is not None and finding.fault.given:
        return finding.fault.outputs, None
    return None


def _remove_old(folder: Path) -> None:
    """Take away the findings of an earlier run: they would pass for this one's."""
    for old in folder.glob("*"):
        if re.fullmatch("[0-9a-f]{12}", old.name) and (old / "report.md").is_file():
            shutil.rmtree(old)


def _writer(finding: Finding, pool: Pool) -> str:
    """A released, eager target writes the file: not the accused."""
    order = sorted(
        pool.targets.values(),
        key=lambda t: (
            dialect(t.dialect).targets.reading_order(t)[:1],
            t.name == finding.accused,
            dialect(t.dialect).targets.reading_order(t),
        ),
    )
    return order[0].name
