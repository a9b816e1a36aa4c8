"""The parts that the results of all commands are made of."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from numbers import Integral, Real
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.causes import causes_of
from outvote.core.protocol import Hello
from outvote.core.target import Run, Target
from outvote.core.version import VERSION

SCHEMA = 2  # of result.json; report/schema/result.schema.json says what it holds


def head(
    command: str,
    targets: Sequence[Mapping[str, Any]],
    data: Mapping[str, Any] | None,
    *,
    created: str,
    seconds: float,
    verdict: str | None,
    summary: str,
    interrupted: bool = False,
    warnings: Sequence[str] = (),
    findings: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """What the results of all commands begin with; `verdict` is None where nothing is judged."""
    return {
        "schema": SCHEMA,
        "command": command,
        "outvote": VERSION,
        "created": created,
        "seconds": round(seconds, 3),
        "verdict": verdict,
        "interrupted": interrupted,
        "summary": summary,
        "warnings": list(warnings),
        "targets": list(targets),
        "data": data,
        "findings": list(findings),
        "causes": causes_of(findings),
        "gate": None,
    }


def moment(at: datetime | None = None) -> str:
    """A point in time as results hold it; without one: now."""
    return (at or datetime.now(UTC)).isoformat(timespec="seconds")


def target_head(target: Target, hello: Run[Hello] | None) -> dict[str, Any]:
    """What every result says of a target: what it is, and what it said when it came up."""
    said = hello.answer if hello is not None else None
    return {
        "name": target.name,
        "library": target.library,
        "mode": target.mode,
        "versions": dict(said.versions) if said else {},
        "precision": dict(said.precision) if said else {},
        "python": said.python if said else None,
        "platform": said.platform if said else None,
        "setup": str(target.setup) if target.setup else None,
        "requirements": list(target.requirements),
        "config": str(target.config) if target.config else None,
    }


def number(value: float | None) -> float | None:
    """A float that JSON can hold; null for NaN and infinity."""
    return None if value is None or not math.isfinite(value) else float(value)


def plain(value: Any) -> Any:
    """The value with only JSON's types in it: NaN and infinities become null."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if type(value) is float:  # most of what there is
        return number(value)
    if isinstance(value, Integral):  # NumPy's integers too
        return int(value)
    if isinstance(value, Real):
        return number(float(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    raise TypeError(
        f"A result holds only numbers, strings, lists and dicts. Received: {type(value).__name__}"
    )


def picture(array: Array, limits: tuple[float, float] | None = None) -> str | None:
    """An input as a PNG data URI, if it looks like an image; black and white are its `limits`."""
    if array.ndim == 3 and array.shape[-1] in (1, 3) and min(array.shape[:2]) >= 4:
        image = array[..., 0] if array.shape[-1] == 1 else array
    elif array.ndim == 2 and min(array.shape) >= 8 and array.dtype.kind == "f":
        image = array
    else:
        return None
    from PIL import Image

    values = image.astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = limits or ((finite.min(), finite.max()) if finite.size else (0.0, 1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        span = np.nan_to_num(high - low) or 1.0
        scaled = (np.nan_to_num(values, nan=low, posinf=high, neginf=low) - low) / span * 255
    buffer = io.BytesIO()
    Image.fromarray(np.clip(np.nan_to_num(scaled), 0, 255).astype(np.uint8)).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
