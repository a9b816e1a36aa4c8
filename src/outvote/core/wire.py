"""Messages between the driver and a worker: a JSON header and raw arrays, over a socket.

A frame is: magic, header length, body length, header, body. Everything in it is checked before
it is believed; what does not fit raises ProtocolError.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from outvote.core.arrays import Array, byte_size, dtype_name, from_bytes, to_bytes
from outvote.core.errors import ProtocolError

PROTOCOL = 1
_PREFIX = struct.Struct("<4sIQ")
_MAGIC = b"OVT1"
_MAX_HEADER = 256 << 20
_MAX_BODY = 8 << 30


class Closed(Exception):  # noqa: N818 - the peer hung up, which is not always an error
    """The other side closed the connection."""


class Silence(Exception):  # noqa: N818 - nothing came in time; the caller decides what it means
    """No byte arrived before the deadline."""


class Channel:
    """One end of a connection on which messages travel."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def send(self, message: dict[str, Any], arrays: Sequence[Array] = ()) -> None:
        bodies = [to_bytes(array) for array in arrays]
        announced = [{"dtype": dtype_name(a), "shape": list(a.shape)} for a in arrays]
        header = json.dumps({"message": message, "arrays": announced}).encode()
        size = sum(body.nbytes for body in bodies)
        try:
            self._socket.sendall(_PREFIX.pack(_MAGIC, len(header), size) + header)
            for body in bodies:
                self._socket.sendall(body)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed from error

    def receive(
        self, deadline: float | None = None, tick: Callable[[], None] | None = None
    ) -> tuple[dict[str, Any], list[Array]]:
        """The next message. `tick` is called a few times a second while waiting."""
        prefix = self._read(_PREFIX.size, deadline, tick)
        magic, header_size, body_size = _PREFIX.unpack(prefix)
        if magic != _MAGIC:
            raise ProtocolError(f"expected a message, received the bytes {bytes(prefix)!r}")
        if header_size > _MAX_HEADER or body_size > _MAX_BODY:
            raise ProtocolError(f"a message of {header_size} + {body_size} bytes is too large")
        message, announced = _parse(self._read(header_size, deadline, tick))
        sizes = [byte_size(item["dtype"], item["shape"]) for item in announced]
        if sum(sizes) != body_size:
            raise ProtocolError(f"{sum(sizes)} bytes announced in the header, {body_size} sent")
        arrays = [
            from_bytes(item["dtype"], item["shape"], self._read(size, deadline, tick))
            for item, size in zip(announced, sizes, strict=True)
        ]
        return message, arrays

    def close(self) -> None:
        self._socket.close()

    def _read(
        self, size: int, deadline: float | None, tick: Callable[[], None] | None
    ) -> memoryview:
        # np.empty commits no memory before bytes really arrive.
        buffer = np.empty(size, np.uint8).data
        filled = 0
        while filled < size:
            self._wait(deadline, tick)
            try:
                count = self._socket.recv_into(buffer[filled:])
            except ConnectionResetError as error:
                raise Closed from error
            if count == 0:
                raise Closed
            filled += count
        return buffer

    def _wait(self, deadline: float | None, tick: Callable[[], None] | None) -> None:
        if deadline is None and tick is None:
            return
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while not poll.poll(100):
            if deadline is not None and time.monotonic() > deadline:
                raise Silence
            if tick is not None:
                tick()


def _parse(header: memoryview) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        parsed = json.loads(bytes(header))
        message, announced = parsed["message"], parsed["arrays"]
        well_formed = isinstance(message, dict) and all(
            isinstance(item, dict) and {"dtype", "shape"} <= item.keys() for item in announced
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ProtocolError(f"a message header could not be read: {error}") from error
    if not well_formed:
        raise ProtocolError("a message header has the wrong form")
    return message, announced
