"""Where in a library's own code an error came up, read from the text of a traceback."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)$', re.M)
_INSTALLED = ("/site-packages/", "/dist-packages/")


@dataclass(frozen=True)
class Frame:
    """A place in a library: the file below its packages, the line, and the function."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.function}, {self.file}:{self.line}"


def innermost_frame(traceback: str, package: str = "") -> Frame | None:
    """The last frame in a package, or else in any that is installed; None where there is none.

    What a package calls (another library's checks, say) is deeper, and says less.
    """
    found = frames_of(traceback)
    own = [frame for frame in found if package and frame.file.startswith(f"{package}/")]
    kept = own or found
    return kept[-1] if kept else None


def frames_of(traceback: str) -> list[Frame]:
    """Every frame in what is installed, the innermost last."""
    return [frame for match in _FRAME.finditer(traceback) if (frame := _installed(match))]


def _installed(match: re.Match[str]) -> Frame | None:
    path = match["file"].replace("\\", "/")
    for folder in _INSTALLED:
        if folder in path:
            return Frame(path.rpartition(folder)[2], int(match["line"]), match["name"])
    return None
