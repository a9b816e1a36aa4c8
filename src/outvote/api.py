"""`outvote.check(model, x, y, targets=[...])`: the same job from Python."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from outvote.commands.check.result import check_result
from outvote.commands.check.run import Checked, Job, Watch, run_check, silent
from outvote.config import load_config
from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.findings.evidence import write_evidence
from outvote.findings.gate import STRICT, Gate
from outvote.judge.compare import Settings
from outvote.run.local import Pool
from outvote.targets.choose import choose, known_targets
from outvote.targets.environments.provide import Announce, unseen


@dataclass(frozen=True)
class Result:
    """What was found. `data` is what result.json holds."""

    data: dict[str, Any]
    folder: Path | None

    @property
    def consistent(self) -> bool:
        return bool(self.data.get("verdict") == "consistent")

    @property
    def findings(self) -> list[dict[str, Any]]:
        return list(self.data["findings"])

    def __str__(self) -> str:
        return str(self.data["summary"])


def check(
    model: Any,
    x: Array | Sequence[Array] | None = None,
    y: Array | None = None,
    *,
    targets: Sequence[str] | None = None,
    out: str | Path | None = None,
    config: str | Path | None = None,
    custom: str | Path | None = None,
    allow_code: bool = False,
    allow_nan: bool = False,
    allow_empty: bool = False,
    settings: Settings | None = None,
    find_links: Sequence[str] = (),
) -> Result:
    """Check a live Keras model, or a model file, on several targets.

    A live model is saved to a temporary file and read again by the workers, so custom layers
    need `custom`, the file that defines them. With `out`, the reports are written there.
    """
    known = load_config(Path(config) if config else None)
    chosen = choose(targets, known_targets(known.targets, known.folder))
    with tempfile.TemporaryDirectory(prefix="outvote-") as folder:
        path = as_file(model, Path(folder))
        job = Job(
            model=path,
            targets=tuple(chosen),
            data=as_arrays(x, y),
            settings=settings or Settings(),
            custom=Path(custom) if custom else None,
            allow_code=allow_code,
            allow_nan=allow_nan,
            allow_empty=allow_empty,
            links=tuple(find_links),
        )
        return run_job(job, Path(out) if out else None)


def run_job(
    job: Job,
    out: Path | None,
    watch: Watch = silent,
    announce: Announce = unseen,
    gate: Gate = STRICT,
) -> Result:
    """Run a job and, where a folder is given, write every report into it."""
    repros: dict[str, str] = {}
    if out is not None:
        prepare_folder(out)

    def keep(pool: Pool, checked: Checked) -> None:
        if out is not None:
            repros.update(saved(lambda: write_evidence(pool, checked, out), out))

    checked = run_check(job, watch, keep, announce)
    data = gate.judged(check_result(checked, repros))
    if out is not None:
        from outvote.report import write_all

        saved(lambda: write_all(data, out), out)
    return Result(data, out)


def prepare_folder(out: Path) -> None:
    """Make sure, before hours of work, that results can be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".outvote-probe"
        probe.write_bytes(b"x" * 4096)
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"the output folder {out} cannot be written ({error.strerror}); "
            "choose another with --out"
        ) from error


def saved(write: Any, out: Path) -> Any:
    """What `write` returns; a disk that is full or read-only is an error for the user."""
    try:
        return write()
    except OSError as error:
        raise UsageError(
            f"writing the results into {out} failed ({error.strerror}); "
            "free some space, or choose another folder with --out, and run again"
        ) from error


def as_file(model: Any, folder: Path, name: str = "model") -> Path:
    """The path of a model; one that lives in memory is saved under this name first."""
    if isinstance(model, str | Path):
        return Path(model)
    if not hasattr(model, "save"):
        raise UsageError(
            f"expected a Keras model or the path of a model file; received {type(model).__name__}"
        )
    path = folder / f"{name}.keras"
    model.save(path)
    return path


def as_arrays(x: Array | Sequence[Array] | None, y: Array | None) -> dict[str, Array] | None:
    """Inputs and ground truth under the names that they have in a data file."""
    if x is None:
        if y is not None:
            raise UsageError("y was given without x; give the inputs that y belongs to")
        return None
    several = isinstance(x, list | tuple)
    arrays = {f"x{i}": np.asarray(a) for i, a in enumerate(x)} if several else {"x": np.asarray(x)}
    return arrays if y is None else {**arrays, "y": np.asarray(y)}
