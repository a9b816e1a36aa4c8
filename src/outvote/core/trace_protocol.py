"""What a library is asked to find the function at fault: which of its own functions a model calls.

The functions lie one level below the layers: those that every backend of Keras has under one name,
so that what one was given can be given to another's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from outvote.core.model import Model
from outvote.core.protocol import Reply, Request
from outvote.core.states import State

TENSOR = "$tensor"  # {"$tensor": n} in the arguments is the n-th tensor


@dataclass(frozen=True)
class TracedCall:
    """One call of a function of a backend: where it stands, what it got and what it gave."""

    function: str  # the module and its name, as all backends have it: nn.average_pool
    file: str  # below the installed packages
    line: int
    args: Any
    kwargs: Any
    tensors: tuple[State, ...]
    results: tuple[State, ...]


@dataclass(frozen=True, kw_only=True)
class CallsTraced(Reply):
    """The outermost calls, in their order."""

    calls: tuple[TracedCall, ...]


@dataclass(frozen=True, kw_only=True)
class TraceCalls(Request[CallsTraced], deed="trace the calls of its functions"):
    """Run a model layer by layer, and tell which functions of the backend it calls."""

    model: Model
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Replayed:
    """What one call gives here; an error where it cannot be called so."""

    results: tuple[State, ...]
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class CallsReplayed(Reply):
    """In the order of the calls."""

    calls: tuple[Replayed, ...]


@dataclass(frozen=True, kw_only=True)
class ReplayCalls(Request[CallsReplayed], deed="replay calls of functions"):
    """Call the same functions of this backend with the tensors that another one had."""

    calls: tuple[TracedCall, ...]
