"""Operators that the user brings: a compiled library for ONNX Runtime, Python for the reference.

Both are code, and run with `--allow-code` alone. A Python file may name the library that belongs to
it, so that one `--custom` serves both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outvote.core.protocol import ScriptText
from outvote.worker.main import Context, Refused
from outvote.worker.scripts import run_script

_MODULE = "custom"
_LIBRARY = "LIBRARY"  # what a Python file calls the path of its library


def library_of(context: Context) -> Path | None:
    """The library of operators, as a file of this worker; None where there is none."""
    told = _allowed(context)
    if told is None:
        return None
    if not _is_library(told):
        named = _run(told, context).get(_LIBRARY)
        return None if named is None else Path(named)
    path = context.folder / Path(told.name).name
    context.blobs.copy_file(told.files[told.name], path)
    return path


def classes_of(context: Context) -> list[Any]:
    """Operators in Python, as ONNX' reference implementation takes them."""
    from onnx.reference.op_run import OpRun

    told = _allowed(context)
    if told is None or _is_library(told):
        return []
    found = [thing for thing in _run(told, context).values() if isinstance(thing, type)]
    return [kind for kind in found if issubclass(kind, OpRun) and kind.__module__ == _MODULE]


def _run(told: ScriptText, context: Context) -> dict[str, Any]:
    return run_script(told, context, "custom file", _MODULE)


def _is_library(told: ScriptText) -> bool:
    """Whether it is compiled code, which came as bytes; a script comes as text."""
    return told.name in told.files


def _allowed(context: Context) -> ScriptText | None:
    told = context.settings.custom
    if told is not None and not context.settings.allow_code:
        raise Refused(
            f"--custom {told.name} brings operators, which are code; if you trust it, add "
            "--allow-code"
        )
    return told
