"""Messages between the driver and a worker: a JSON header and raw arrays, over a socket.

A frame is: magic, header length, body length, header, body. Everything in it is checked before
it is believed; what does not fit raises ProtocolError. Neither direction waits beyond a deadline,
and what has arrived of a frame is kept when one passes: patience may be renewed.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from outvote.core.arrays import Array, byte_size, dtype_name, from_bytes, to_bytes
from outvote.core.errors import ProtocolError

_PREFIX = struct.Struct("<4sIQ")
_MAGIC = b"OVT1"
_MAX_HEADER = 256 << 20
_MAX_BODY = 8 << 30
_TICK = 100  # milliseconds

Message = tuple[dict[str, Any], list[Array]]
Deadline = Callable[[], float]


class Closed(Exception):  # noqa: N818 - the peer hung up, which is not always an error
    """The other side closed the connection."""


class Silence(Exception):  # noqa: N818 - nothing came in time; the caller decides what it means
    """Nothing moved before the deadline."""


def framed(message: dict[str, Any], arrays: Sequence[Array] = ()) -> list[memoryview]:
    """A message as bytes; raises ProtocolError for what cannot be sent."""
    bodies = [to_bytes(array) for array in arrays]
    announced = [{"dtype": dtype_name(a), "shape": list(a.shape)} for a in arrays]
    try:
        header = json.dumps({"message": message, "arrays": announced}, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"a message cannot be sent: {error}") from error
    size = sum(body.nbytes for body in bodies)
    return [memoryview(_PREFIX.pack(_MAGIC, len(header), size) + header), *bodies]


def _plain(value: Any) -> Any:
    """Numbers of NumPy, which some configurations hold, as Python's own."""
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biuf":
        return value.tolist()
    raise TypeError(f"{type(value).__name__} {str(value)[:80]!r} is no plain data")


class Channel:
    """One end of a connection on which messages travel."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._poll = select.poll()
        self._arriving: Iterator[Message | None] | None = None
        sock.setblocking(False)

    def send(
        self,
        message: dict[str, Any],
        arrays: Sequence[Array] = (),
        deadline: Deadline | None = None,
        tick: Callable[[], None] | None = None,
    ) -> None:
        self.send_frame(framed(message, arrays), deadline, tick)

    def send_frame(
        self,
        parts: Sequence[memoryview],
        deadline: Deadline | None = None,
        tick: Callable[[], None] | None = None,
    ) -> None:
        """Send what `framed` made. After a Silence the connection is of no use any more."""
        for part in parts:
            sent = 0
            while sent < part.nbytes:
                try:
                    sent += self._socket.send(part[sent:])
                except BlockingIOError:
                    self._wait(select.POLLOUT, deadline, tick)
                except (BrokenPipeError, ConnectionResetError) as error:
                    raise Closed from error

    def receive(
        self, deadline: Deadline | None = None, tick: Callable[[], None] | None = None
    ) -> Message:
        """The next message. `tick` is called a few times a second while waiting.

        After a Silence, the next call goes on where this one stopped.
        """
        if self._arriving is None:
            self._arriving = self._message()
        arriving = self._arriving
        try:
            while (message := next(arriving)) is None:
                self._wait(select.POLLIN, deadline, tick)
        except Silence:
            raise
        except BaseException:
            self._arriving = None
            raise
        self._arriving = None
        return message

    def close(self) -> None:
        self._socket.close()

    def _message(self) -> Iterator[Message | None]:
        """Reads a frame as its bytes arrive: yields None while there are none, then the message."""
        prefix = yield from self._read(_PREFIX.size)
        magic, header_size, body_size = _PREFIX.unpack(prefix)
        if magic != _MAGIC:
            raise ProtocolError(f"expected a message, received the bytes {bytes(prefix)!r}")
        if header_size > _MAX_HEADER or body_size > _MAX_BODY:
            raise ProtocolError(f"a message of {header_size} + {body_size} bytes is too large")
        message, announced = _parse((yield from self._read(header_size)))
        sizes = [byte_size(item["dtype"], item["shape"]) for item in announced]
        if sum(sizes) != body_size:
            raise ProtocolError(f"{sum(sizes)} bytes announced in the header, {body_size} sent")
        arrays = []
        for item, size in zip(announced, sizes, strict=True):
            data = yield from self._read(size)
            arrays.append(from_bytes(item["dtype"], item["shape"], data))
        yield message, arrays

    def _read(self, size: int) -> Any:
        # np.empty commits no memory before bytes really arrive.
        buffer = np.empty(size, np.uint8).data
        filled = 0
        while filled < size:
            try:
                count = self._socket.recv_into(buffer[filled:])
            except BlockingIOError:
                yield None
                continue
            except ConnectionResetError as error:
                raise Closed from error
            if count == 0:
                raise Closed
            filled += count
        return buffer

    def _wait(self, event: int, deadline: Deadline | None, tick: Callable[[], None] | None) -> None:
        self._poll.register(self._socket, event)
        while True:
            left = np.inf if deadline is None else 1000 * (deadline() - time.monotonic())
            watched = deadline is not None or tick is not None
            if self._poll.poll(max(0, min(_TICK, left)) if watched else None):
                return
            if left <= 0:
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
