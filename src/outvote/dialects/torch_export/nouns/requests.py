"""What the driver asks of workers of this wing alone: calls new or changed, programs by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outvote.core.model import Input, Model
from outvote.core.protocol import File, Form, Reply, Request


@dataclass(frozen=True, kw_only=True)
class CallsTried(Reply):
    """Calls that ran, each with the batch axes of what it gives; forms of that."""

    model: Model
    specs: Mapping[str, tuple[Form, ...]]


@dataclass(frozen=True, kw_only=True)
class TryCalls(Request[CallsTried], deed="try calls"):
    """Run a model on numbers of our own; what mixes instances is refused."""

    model: Model


@dataclass(frozen=True, kw_only=True)
class CallsDrawn(CallsTried):
    """A model of one input; how many draws did not work out."""

    refused: int


@dataclass(frozen=True, kw_only=True)
class DrawCalls(Request[CallsDrawn], deed="draw calls"):
    """New calls, one behind the other, that end in a tensor of the form that is wanted.

    `keep`: of their own accord; otherwise more calls lead back to it.
    """

    given: Input
    wanted: Form
    seed: int
    calls: int = 1
    keep: bool = False


@dataclass(frozen=True, kw_only=True)
class ProgramBuilt(Reply):
    """An archive, the digests of inputs that fit, and its size."""

    file: File
    inputs: tuple[str, ...]
    layers: int
    weights: int


@dataclass(frozen=True, kw_only=True)
class BuildProgram(Request[ProgramBuilt], deed="build programs of the zoo"):
    """A module of `workers/zoo/models.py`, exported with a free batch."""

    name: str
    seed: int
