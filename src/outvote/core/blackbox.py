"""What a worker is doing right now, in a few bytes of shared memory that survive its death.

The worker writes a step counter and a layer name, a microsecond each; the driver reads them to
show progress, to tell slow from stuck, and to know where a dead worker was. Between two steps it
may give signs of life, such as a piece of code that is compiled.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

_LAYOUT = struct.Struct("<QQH")
_SIGNS = struct.Struct("<Q")  # at the end
_SIZE = 1024
_TEXT = _SIZE - _LAYOUT.size - _SIGNS.size


@dataclass(frozen=True)
class Position:
    """Steps done of a total, the layer in progress, and how many signs of life there were."""

    done: int
    total: int
    layer: str | None
    signs: int = 0


class BlackBox:
    """One worker's position. The driver creates the file; the worker opens the same path."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_SIZE))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SIZE)

    def note(self, done: int, total: int, layer: str = "") -> None:
        text = layer.encode(errors="replace")[:_TEXT]
        self._map[: _LAYOUT.size + len(text)] = _LAYOUT.pack(done, total, len(text)) + text

    def live(self) -> None:
        """One more sign of life."""
        (signs,) = _SIGNS.unpack_from(self._map, _SIZE - _SIGNS.size)
        self._map[_SIZE - _SIGNS.size :] = _SIGNS.pack(signs + 1)

    def read(self) -> Position:
        done, total, length = _LAYOUT.unpack_from(self._map)
        text = self._map[_LAYOUT.size : _LAYOUT.size + min(length, _TEXT)]
        (signs,) = _SIGNS.unpack_from(self._map, _SIZE - _SIGNS.size)
        return Position(done, total, text.decode(errors="replace") or None, signs)
