"""Looks at a model file before anything parses it: is it there, and a file?

A model file is untrusted input. The driver does not read it: ONNX does, inside a worker process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outvote.core.errors import UsageError
from outvote.core.given import require_file

SUFFIXES = (".onnx",)
CASE_FILE = "model.onnx"
IN_PARTS = True  # weights may lie in other files
NAMED_DIMS = True
_MAX_BYTES = 2 << 30  # of one protobuf message


def inspect(path: Path, weights: Path | None) -> None:
    """Raise UsageError, with a remedy, for anything that cannot be an ONNX model."""
    require_file(path)
    if weights is not None:
        raise UsageError(
            f"--weights goes with an architecture in a .json file, not with {path.name}; weights "
            "of an ONNX model lie in it or, under the names it tells, beside it"
        )
    try:
        size = path.stat().st_size
        with path.open("rb") as opened:
            opened.read(1)
    except OSError as error:
        raise UsageError(f"{path} could not be opened: {error.strerror}") from error
    if size == 0:
        raise UsageError(f"{path} is empty")
    if size > _MAX_BYTES:
        raise UsageError(
            f"{path} is not an ONNX file: it has {size:,} bytes, and more than {_MAX_BYTES:,} do "
            "not fit into one message; store large weights as external data"
        )


def saved(live: Any, path: Path) -> Path | None:
    """A model in memory, a ModelProto, as a file; None if it is something else."""
    if type(live).__module__.startswith("onnx") and hasattr(live, "SerializeToString"):
        path.write_bytes(live.SerializeToString())
        return path
    return None
