"""A Target is one implementation under test; a Run is what it did with one case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from outvote.core.arrays import Array


@dataclass(frozen=True)
class Target:
    """One implementation: a worker kind in an interpreter, with its mode and environment."""

    name: str
    dialect: str  # the wing it belongs to: the models it understands
    worker: str  # what runs inside the process: a folder or file in the wing's `workers`
    library: str  # what counts as one vote: targets of one library are not independent
    backend: str = ""
    mode: str = "eager"
    python: Path | None = None  # None: the interpreter that runs outvote
    packages: tuple[str, ...] = ()  # import names that must be found before a start makes sense
    extra: str = ""  # `pip install 'outvote[extra]'` brings it
    env: Mapping[str, str] = field(default_factory=dict)
    setup: Path | None = None
    requirements: tuple[str, ...] = ()  # other versions than the installed ones, for pip
    recipe: str = ""  # a classic environment of the dialect underneath
    path: tuple[Path, ...] = ()  # folders put in front of the interpreter's own packages
    plain: str = ""  # the name without versions: `torch` of `keras==3.9.0/torch`
    # Kinds of layers (`*Conv*`) whose kernels are another library's: there it has no own vote.
    borrows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_eager(self) -> bool:
        """Whether layers are computed one by one, so that no compiler sees several at once."""
        return self.mode in ("eager", "no-onednn") and self.backend != "openvino"

    @property
    def compiles_slowly(self) -> bool:
        """Whether a single layer takes seconds to compile."""
        return self.mode == "compile"

    def implementation_of(self, layer_kind: str | None) -> str:
        """The library whose code computes such a layer on this target."""
        if layer_kind is not None:
            for library, kinds in self.borrows.items():
                if any(fnmatchcase(layer_kind, pattern) for pattern in kinds):
                    return library
        return self.library


class Outcome(StrEnum):
    """How a run ended."""

    OK = "ok"
    ERROR = "error"  # a Python exception
    UNSUPPORTED = "unsupported"  # a clean "not implemented": a gap, not a crash
    CRASH = "crash"  # the process died
    HANG = "hang"  # no progress within the time limit
    MEMORY = "memory"  # killed for using too much memory
    GARBAGE = "garbage"  # what came over the wire was no message


@dataclass(frozen=True)
class Run:
    """What one target did with one request. Failures are outcomes, not exceptions."""

    target: str
    outcome: Outcome
    reply: Mapping[str, Any] = field(default_factory=dict)
    arrays: tuple[Array, ...] = ()
    message: str = ""
    layer: str | None = None  # where it was when it failed
    detail: str = ""  # traceback or the end of the worker's log
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK
