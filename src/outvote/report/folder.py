"""The folder that results are written into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outvote.core.errors import UsageError, remedy_for


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


def write_into(out: Path | None, result: dict[str, Any]) -> None:
    """Every report of a result, where there is a folder for it."""
    if out is not None:
        from outvote.report import write_all

        saved(lambda: write_all(result, out), out)


def saved(write: Any, out: Path) -> Any:
    """What `write` returns; a disk that is full or read-only is an error for the user."""
    try:
        return write()
    except OSError as error:
        remedy = remedy_for(error)
        if remedy is None:
            raise
        raise UsageError(
            f"writing the results into {out} failed ({error.strerror}); {remedy} with --out, "
            "and run again"
        ) from error
