"""What a page sends: fields as JSON."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

from outvote.core.errors import UsageError

_MOST = 1 << 20  # bytes


async def json_of(request: Request) -> dict[str, Any]:
    """The fields that were sent; notes are the longest."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > _MOST:
            raise UsageError(f"the request is longer than {_MOST:,} bytes")
        parts.append(part)
    try:
        given = json.loads(b"".join(parts))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the request is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise UsageError("the request holds no fields")
    return given
