"""A Target is one implementation under test; a Run is what it did with one case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

if TYPE_CHECKING:  # a default says that a plain `Run` may hold any reply
    from typing_extensions import TypeVar

    R = TypeVar("R", covariant=True, default=Any)
else:
    from typing import TypeVar

    R = TypeVar("R", covariant=True)


CAPABILITIES: Mapping[str, str] = {
    "read": "reads model files",
    "save": "writes model files",
    "make": "says what new layers would be",
    "attempt": "tries illegal values",
    "ranges": "watches the range of every layer",
    "watch": "shows hidden layers of a whole run",
    "step": "computes one layer at a time",
    "trace": "tells which of its own functions a layer calls",
    "float64": "computes in float64 where it is asked to",
    "gradients": "differentiates, so that inputs can be searched",
    "train": "trains models",
    "pullback": "gives the gradients of layers and losses, and the updates of optimisers",
    "versions": "exists in several versions, to choose from",
}
COSTS: Mapping[str, str] = {
    "compiles": "sees several layers at once, as one graph",
    "compiles_slowly": "takes seconds for a single layer",
    "compiles_for_minutes": "takes minutes for a model",
    "compiles_per_shape": "compiles every operation anew for every shape",
    "loads_slowly": "takes many times longer than others to load a small graph",
    "differentiates_slowly": "others find gradients quicker",
}


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
    package: str = ""  # for pip: the library that it is, whose releases its name can ask for
    extra: str = ""  # `pip install 'outvote[extra]'` brings it; several by commas
    env: Mapping[str, str] = field(default_factory=dict)
    setup: Path | None = None
    requirements: tuple[str, ...] = ()  # other versions than the installed ones, for pip
    recipe: str = ""  # a classic environment of the dialect underneath
    path: tuple[Path, ...] = ()  # folders put in front of the interpreter's own packages
    plain: str = ""  # the name without versions: `torch` of `keras==3.9.0/torch`
    capabilities: frozenset[str] = frozenset()  # see CAPABILITIES
    costs: frozenset[str] = frozenset()  # see COSTS
    feigns: tuple[str, ...] = ()  # types that it takes and gives, and computes in narrower ones
    is_wider: bool = False  # it computes in a wider type than it gives: no overflow on the way
    original: str = ""  # of a twin, which transforms models first: who runs them as they are
    twin: str = ""  # of a twin: the transformation, as `--twins` names it in every dialect
    uncut: str = ""  # of one that runs models as a whole alone: what it means where it differs
    defines: bool = False  # its library says what the dialect's layers mean
    device: str = ""  # what it computes on, where that is no processor: gpu
    config: Path | None = None  # the outvote.toml that defines it; None: it is built in
    # Kinds of layers (`*Conv*`) whose kernels are another library's: there it has no own vote.
    borrows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_eager(self) -> bool:
        """Whether layers are computed one by one, so that no compiler sees several at once."""
        return "compiles" not in self.costs

    @property
    def compiles_slowly(self) -> bool:
        """Whether a single layer takes seconds to compile."""
        return "compiles_slowly" in self.costs

    @property
    def climbing_costs(self) -> tuple[bool, bool, bool]:
        """What following its gradient costs: the smallest is the quickest."""
        slow = ("compiles", "differentiates_slowly", "compiles_per_shape")
        return tuple(name in self.costs for name in slow)  # type: ignore[return-value]

    def can(self, *wanted: str) -> bool:
        """Whether it has all these capabilities."""
        return self.capabilities.issuperset(wanted)

    def does_feign(self, dtypes: Iterable[str]) -> bool:
        """Whether tensors of these types say nothing, coming from this target."""
        return not set(self.feigns).isdisjoint(dtypes)

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
    GARBAGE = "garbage"  # what came over the wire was no message, or not the reply to the request
    LOST = "lost"  # the session it belongs to ended with an earlier worker: it was never asked

    @property
    def is_death(self) -> bool:
        """Whether the worker has to be replaced."""
        return self in _DEATHS


_DEATHS = frozenset({Outcome.CRASH, Outcome.HANG, Outcome.MEMORY, Outcome.GARBAGE})


@dataclass(frozen=True)
class Run(Generic[R]):
    """What one target did with one request. Failures are outcomes, not exceptions."""

    target: str
    outcome: Outcome
    answer: R | None = None
    message: str = ""
    layer: str | None = None  # where it was when it failed
    detail: str = ""  # traceback or the end of the worker's log
    error: str = ""  # the name of the exception, where there was one
    refused: bool = False  # the message is meant for the user
    seconds: float = 0.0  # as the driver waited
    inside: float = 0.0  # as the worker worked

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK

    @property
    def reply(self) -> R:
        """The answer of a run that is ok."""
        if self.answer is None:
            raise ValueError(f"{self.target} gave no answer ({self.outcome}): {self.message}")
        return self.answer
