"""Writes `findings/<fingerprint>/`: the one-layer model, its input, a script that proves it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from outvote.bench.bench import Bench
from outvote.core.arrays import Array
from outvote.core.cuts import one_layer
from outvote.core.specimen import Specimen
from outvote.core.target import Run, Target
from outvote.dialects.keras.script import can_prove, script
from outvote.findings import versions as repro_versions
from outvote.findings.finding import Finding
from outvote.findings.issue_text import issue_text
from outvote.judge.compare import Settings
from outvote.localize.isolated import Fault
from outvote.run.pool import Pool, Request

_TEMPLATE = Path(__file__).parents[1] / "dialects" / "keras" / "templates" / "repro.py.txt"


def write_evidence(
    pool: Pool,
    findings: Sequence[Finding],
    targets: Mapping[str, Target],
    hellos: Mapping[str, Run],
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
    hellos: Mapping[str, Run],
    out: Path,
) -> str | None:
    """The folder of one finding; returns its repro script, from `out`, if it has one."""
    folder = out / "findings" / finding.fingerprint
    folder.mkdir(parents=True, exist_ok=True)
    specimen = _specimen(finding)
    text = _proof(pool, finding, targets, folder)
    (folder / "report.md").write_text(issue_text(finding, hellos, text), encoding="utf-8")
    if specimen is None:
        return None
    np.savez(folder / "inputs.npz", allow_pickle=False, **_named(list(specimen.inputs)))
    path = folder / "model.keras"
    arguments = {"model": specimen.model.to_json(), "path": str(path.absolute())}
    saved = pool.ask(_writer(finding, pool), Request("save", arguments))
    if not saved.ok:
        (folder / "not-saved.txt").write_text(f"{saved.message}\n{saved.detail}")
    elif text is None and finding.fault is not None:
        text = _script(finding.fault, targets, folder)
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
    model, arrays = one_layer(finding.fault.layer, finding.fault.given)
    return Specimen(model, tuple(arrays))


def _proof(pool: Pool, finding: Finding, targets: Mapping[str, Target], folder: Path) -> str | None:
    """A script without outvote and without files, where plain Keras can show it."""
    if finding.proof is None or not can_prove(finding, targets.values()):
        return None
    specimen = finding.proof.specimen
    bench = Bench(pool, targets, Settings())
    defaults = bench.defaults(specimen, _writer(finding, pool))
    return script(finding, targets, defaults, pool.blobs, folder)


def _remove_old(folder: Path) -> None:
    """Take away the findings of an earlier run: they would pass for this one's."""
    for old in folder.glob("*"):
        if re.fullmatch("[0-9a-f]{12}", old.name) and (old / "report.md").is_file():
            shutil.rmtree(old)


def _named(arrays: list[Array]) -> dict[str, Array]:
    if len(arrays) == 1:
        return {"x": arrays[0]}
    return {f"x{i}": array for i, array in enumerate(arrays)}


def _writer(finding: Finding, pool: Pool) -> str:
    """A released, eager target writes the file: not the accused."""
    order = sorted(
        pool.targets.values(),
        key=lambda t: (
            t.worker == "keras2",
            t.name == finding.accused,
            bool(t.requirements),
            t.setup is not None,
            t.mode != "eager",
        ),
    )
    return order[0].name


def _script(fault: Fault, targets: Mapping[str, Target], folder: Path) -> str:
    title = f"{fault.layer.kind} layer {fault.layer.name!r}".replace('"', "'")
    shown = [t for t in targets.values() if t.name in (*fault.outputs, *fault.failures)]
    if repro_versions.has_versions(shown):
        (folder / "outvote.toml").write_text(repro_versions.config(shown), encoding="utf-8")
        return repro_versions.script(title, shown)
    targets = {t.name: t for t in shown}
    told = {name: _environment(target) for name, target in targets.items()}
    expected = fault.vote.majority or ()
    return (
        _TEMPLATE.read_text(encoding="utf-8")
        .replace("@TITLE@", title)
        .replace("@TARGETS@", json.dumps(told, indent=4))
        .replace("@MAJORITY@", json.dumps(list(expected)))
        .replace("@TOLERANCE@", repr(float(fault.tolerance)))
    )


def _environment(target: Target) -> dict[str, str]:
    env = {"KERAS_BACKEND": target.backend, "MODE": target.mode, **target.env}
    if target.mode == "no-onednn":
        env["TF_ENABLE_ONEDNN_OPTS"] = "0"
    if target.python is not None:
        env["PYTHON"] = str(target.python.absolute())
    if target.setup is not None:
        env["SETUP"] = str(target.setup.absolute())
    return env
