"""Where in a library's own code an error came up, read from the text of a traceback."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)$', re.M)
# Packages lie in one of these, or in a folder of their own beside those of other versions.
_PACKAGES = re.compile(r"^.*/(?:site-packages|dist-packages|environments/[^/]+)/")


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


def in_packages(path: str) -> str | None:
    """A file as its library names it; None for what is not installed."""
    found = _PACKAGES.match(path.replace("\\", "/"))
    return path[found.end() :].replace("\\", "/") if found else None


def _installed(match: re.Match[str]) -> Frame | None:
    file = in_packages(match["file"])
    return Frame(file, int(match["line"]), match["name"]) if file else None
