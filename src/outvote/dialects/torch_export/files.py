"""Looks at a `.pt2` archive before anything reads it: is it there, whole, and harmless?

A model file is untrusted input. `torch.export.load` unpickles, and evaluates texts of the archive
as Python; we use neither. An archive is a zip of JSON and raw numbers: a worker reads these alone.
"""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath
from typing import Any

from outvote.core.archive import members, require_whole
from outvote.core.errors import UsageError
from outvote.core.given import require_file

SUFFIXES = (".pt2",)
CASE_FILE = "model.pt2"
IN_PARTS = False
NAMED_DIMS = False
_WHAT = ".pt2 archive"
_MAX_GRAPH = 256 << 20
_OLD = "serialized_exported_program.json"


def inspect(path: Path, weights: Path | None) -> None:
    """Raise UsageError, with a remedy, for what is no readable and harmless program."""
    require_file(path)
    if weights is not None:
        raise UsageError(
            f"--weights goes with an architecture in a .json file, not with {path.name}, "
            "which holds its own weights"
        )
    entries = members(path, _WHAT)
    names = [PurePosixPath(entry.filename) for entry in entries]
    if any(name.name == _OLD for name in names):
        raise UsageError(
            f"{path} was written by a PyTorch before 2.8, with pickled weights, which are not "
            "opened; load and save it again with a newer PyTorch"
        )
    if any("aotinductor" in name.parts for name in names):
        raise UsageError(
            f"{path} holds machine code by AOTInductor, which is not run; "
            "give the program that it was compiled from: torch.export.save(program, path)"
        )
    graphs = [e for e, name in zip(entries, names, strict=True) if is_graph(name)]
    if not graphs:
        raise UsageError(
            f"{path} is not a PyTorch program: it has no models/*.json inside; "
            "save one with torch.export.save(torch.export.export(module, inputs), path)"
        )
    if len(graphs) > 1:
        raise UsageError(f"{path} holds {len(graphs)} programs; save one alone")
    if graphs[0].file_size > _MAX_GRAPH:
        raise UsageError(
            f"{path} is refused: its graph takes {graphs[0].file_size:,} bytes, more than "
            f"{_MAX_GRAPH:,}"
        )
    require_whole(path, _WHAT)


def is_graph(name: PurePosixPath) -> bool:
    """Whether a member of an archive is a program's graph: ROOT/models/NAME.json."""
    return len(name.parts) == 3 and name.parts[1] == "models" and name.suffix == ".json"


def saved(live: Any, path: Path) -> Path | None:
    """An exported program, saved under that name; None for anything else."""
    torch = sys.modules.get("torch")  # who has a live one has imported it
    if torch is None or not isinstance(live, torch.export.ExportedProgram):
        return None
    file = path.with_suffix(".pt2")
    torch.export.save(live, file)
    return file
