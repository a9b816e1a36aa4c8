"""A small program as bytes: how it travels in packs, and waits to be looked into."""

from __future__ import annotations

import json

from outvote.core import codec
from outvote.core.errors import ProtocolError
from outvote.core.protocol import ModelRead


def written_program(read: ModelRead) -> bytes:
    """A model without constants, with its shapes."""
    told, _ = codec.written(read)
    return json.dumps(told).encode()


def program_in(content: bytes) -> ModelRead:
    """What was written; raises ProtocolError where it does not fit."""
    try:
        told = json.loads(content)
    except ValueError as error:
        raise ProtocolError(f"a program in a pack could not be read: {error}") from error
    return codec.read(ModelRead, told, [])
