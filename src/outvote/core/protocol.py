"""What the driver asks of workers: one request and one reply per operation, both plain data.

A request names the type of its reply, so that `pool.ask(name, request)` is typed throughout. Both
ends read what they receive by these classes: what is no request is refused with a sentence, what
is no reply is garbage. Files and scripts cross by content: a worker knows no path of the driver.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from outvote.core.arrays import Array
from outvote.core.model import Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.states import State

PROTOCOL = 3
OPERATIONS: dict[str, type[Request[Any]]] = {}
Form = tuple[tuple[int | None, ...], str]  # shape and dtype of a tensor; None is free
NamedForm = tuple[str, tuple[int, ...], str]  # a weight's name, shape and dtype


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a worker answers when it could do what was asked."""


R = TypeVar("R", bound=Reply, covariant=True)


@dataclass(frozen=True, kw_only=True)
class Request(Generic[R]):
    """One question to a worker. `steps` forward moves renew the driver's patience."""

    steps: int = 0
    deed: ClassVar[str]  # "list its layers", for whoever cannot
    reply: ClassVar[type[Reply]]
    opens: ClassVar[str]  # the session that it begins, which dies with its worker
    within: ClassVar[str]  # the session that it needs
    compiles: ClassVar[bool]  # targets that compile are silent meanwhile, be it minutes

    def __init_subclass__(
        cls, deed: str, opens: str = "", within: str = "", compiles: bool = False
    ) -> None:
        super().__init_subclass__()
        cls.deed, cls.opens, cls.within, cls.compiles = deed, opens, within, compiles
        (base,) = cls.__orig_bases__  # type: ignore[attr-defined]
        (cls.reply,) = typing.get_args(base)
        OPERATIONS[cls.__name__] = cls


@dataclass(frozen=True)
class File:
    """A file by its content: a blob of bytes. The name gives messages and a suffix, no place."""

    name: str
    digest: str


@dataclass(frozen=True)
class ScriptText:
    """A Python file that the user named, the modules beside it that it imports, and its data."""

    name: str
    text: str
    modules: Mapping[str, str] = field(default_factory=dict)  # path below its folder: text
    files: Mapping[str, str] = field(default_factory=dict)  # path below its folder: digest


@dataclass(frozen=True)
class Start:
    """What a worker is told first: who it is."""

    worker: str  # module below `outvote.dialects`
    backend: str
    mode: str
    allow_code: bool
    setup: ScriptText | None
    custom: ScriptText | None
    blobs: str  # where arrays are shared
    folder: str  # of this worker alone; it goes when the worker does


@dataclass(frozen=True, kw_only=True)
class Hello(Reply):
    """A worker's first words."""

    protocol: int = PROTOCOL
    versions: Mapping[str, str]
    precision: Mapping[str, Any]
    python: str
    platform: str


@dataclass(frozen=True, kw_only=True)
class Failure(Reply):
    """Why there is no answer. A refusal is meant for the user; a gap is no fault."""

    message: str
    error: str = ""  # the name of the exception
    refused: bool = False
    unsupported: bool = False
    traceback: str = ""
    layer: str | None = None


@dataclass(frozen=True, kw_only=True)
class Done(Reply):
    """Nothing to tell."""


# Model files.


@dataclass(frozen=True, kw_only=True)
class ModelRead(Reply):
    """A model as plain data. `specs` are the forms of what every layer gives."""

    model: Model
    output_shapes: list[list[int | None]]
    specs: Mapping[str, tuple[Form, ...]]


@dataclass(frozen=True, kw_only=True)
class Read(Request[ModelRead], deed="read model files"):
    """Read a model file; its weights go to the blob store.

    `beside` are the files of ListParts, by the names told there; `dims` sizes of free dimensions.
    """

    file: File
    weights: File | None = None
    beside: Mapping[str, File] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PartsListed(Reply):
    """Files that belong to a model, by their places relative to it, as the model tells them."""

    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ListParts(Request[PartsListed], deed="say which files belong to a model"):
    """Which other files a model file keeps its weights in."""

    file: File


@dataclass(frozen=True, kw_only=True)
class Saved(Reply):
    """The file that was written."""

    file: File


@dataclass(frozen=True, kw_only=True)
class Save(Request[Saved], deed="write model files"):
    """Write a model as a file of the worker's own library."""

    model: Model


# Whole models.


@dataclass(frozen=True)
class LinesReached:
    """Lines of a library's own Python that this worker had not told of before, by file.

    `of`: as many lines could be told.
    """

    files: Mapping[str, tuple[int, ...]]  # path inside the library: numbers of lines
    of: int


@dataclass(frozen=True, kw_only=True)
class Ran(Reply):
    """The outputs for all inputs, and the first rows of what watched layers gave.

    `lines`: what of the library's Python it ran, where that was asked for and is known.
    """

    outputs: Outputs
    watched: Mapping[str, tuple[State, ...]] = field(default_factory=dict)
    cache_hits: int = 0
    lines: LinesReached | None = None


@dataclass(frozen=True, kw_only=True)
class RunModel(Request[Ran], deed="run models"):
    """Run a model on stored inputs, batch by batch.

    `jitter` moves every tensor by one unit in the last place (a seed); `keep` re-uses and keeps
    layer outputs across requests, in eager mode, where layers can be watched. `exact` is for
    models in float64, where a library narrows steps of them unless it is told. `lines`: also tell
    which lines of the library's Python are run for the first time.
    """

    model: Model
    inputs: tuple[str, ...]
    batch: int
    jitter: int | None = None
    keep: bool = False
    watch: tuple[str, ...] = ()
    rows: int = 1
    exact: bool = False
    lines: bool = False


@dataclass(frozen=True, kw_only=True)
class Forget(Request[Done], deed="forget models"):
    """Drop every layer and output kept from earlier models."""


@dataclass(frozen=True)
class LayerRange:
    """What one layer gave: the ends of its finite values, and how many others."""

    layer: str
    layer_kind: str
    smallest: float | None
    largest: float | None
    nans: int
    infinities: int


@dataclass(frozen=True, kw_only=True)
class RangesWatched(Reply):
    """What each layer gave, the tensor that is wanted, and which rows hold NaN in any layer."""

    layers: tuple[LayerRange, ...]
    wanted: Array
    bad: Array


@dataclass(frozen=True, kw_only=True)
class WatchRanges(Request[RangesWatched], deed="watch the ranges of layers"):
    """Run a model and watch every layer."""

    model: Model
    inputs: tuple[str, ...]
    wanted: Ref


@dataclass(frozen=True, kw_only=True)
class ModelTrained(Reply):
    """For each test set the accuracy before training and after each epoch."""

    accuracy: list[list[float]]


@dataclass(frozen=True, kw_only=True)
class TrainModel(Request[ModelTrained], deed="train models"):
    """Train a copy of a model. `inputs` and `labels` name sets of data, which are joined."""

    model: Model
    inputs: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]
    tests: tuple[tuple[tuple[str, ...], str], ...]
    epochs: int
    batch: int
    learning_rate: float
    seed: int


# One layer at a time.


@dataclass(frozen=True, kw_only=True)
class OpenSession(Request[Done], deed="step through layers", opens="session"):
    """Begin a session in which layers are computed one at a time."""

    model: Model
    inputs: tuple[State, ...]


@dataclass(frozen=True, kw_only=True)
class Stepped(Reply):
    """A layer from this target's own tensors, and from the given ones.

    Own tensors may be missing or unfit, because an earlier layer went wrong: then `own` is None
    and `own_error` says why.
    """

    own: tuple[State, ...] | None
    isolated: tuple[State, ...] | None = None
    own_error: str = ""


@dataclass(frozen=True, kw_only=True)
class StepLayer(Request[Stepped], deed="step through layers", within="session"):
    """Compute a layer on this target's own tensors and, if given, on another target's."""

    layer: str
    given: tuple[State, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Called(Reply):
    """What a layer gave."""

    outputs: tuple[State, ...]


@dataclass(frozen=True, kw_only=True)
class CallLayer(Request[Called], deed="step through layers", within="session"):
    """Compute a layer on the given tensors alone."""

    layer: str
    given: tuple[State, ...]


@dataclass(frozen=True, kw_only=True)
class CloseSession(Request[Done], deed="step through layers"):
    """End the session and drop its tensors."""


# New layers.


@dataclass(frozen=True, kw_only=True)
class KindsListed(Reply):
    """Kinds of layers with their parameters, and activations that need nothing but x.

    `arguments` are those of a kind's call besides the first, by name.
    """

    kinds: Mapping[str, list[dict[str, Any]]]
    activations: list[str]
    arguments: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ListKinds(Request[KindsListed], deed="list its kinds of layers"):
    """All kinds of layers that the worker's library has."""


@dataclass(frozen=True, kw_only=True)
class LayerMade(Reply):
    """A layer as it would be: serialised, its weights, its outputs, how it is called.

    `firsts` are the values of the weights that are not floats.
    """

    spec: Mapping[str, Any]
    weights: tuple[NamedForm, ...]
    outputs: tuple[Form, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    firsts: tuple[Array, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MakeLayer(Request[LayerMade], deed="make layers"):
    """What a layer would be on tensors of these forms; `joined`: it takes them as one list.

    With `tried` it is also called: some kinds announce another shape than they give. `named` are
    arguments of the call; a reference in them means the tensor of that place in `given`, where
    those without a name come first.
    """

    kind: str
    parameters: Mapping[str, Any]
    given: tuple[Form, ...]
    joined: bool
    tried: bool
    named: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LayerAttempted(Reply):
    """The shapes that came out of what was not refused."""

    shapes: list[list[int]]


@dataclass(frozen=True, kw_only=True)
class AttemptLayer(Request[LayerAttempted], deed="try illegal values"):
    """Make a layer with parameters that should be refused, and call it."""

    kind: str
    parameters: Mapping[str, Any]
    given: tuple[Form, ...]
    joined: bool


@dataclass(frozen=True)
class RebuiltLayer:
    """The full configuration of a layer, what its origin says now, the weights it wants."""

    config: Mapping[str, Any]
    origin: Mapping[str, Any]
    weights: tuple[NamedForm, ...]


@dataclass(frozen=True, kw_only=True)
class LayersRebuilt(Reply):
    """Every layer of the model, in order."""

    layers: tuple[RebuiltLayer, ...]


@dataclass(frozen=True, kw_only=True)
class RebuildLayers(Request[LayersRebuilt], deed="rebuild layers"):
    """Build a model's layers anew on inputs of these shapes."""

    model: Model
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class DefaultsTold(Reply):
    """Configurations by the names of layers."""

    defaults: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class TellDefaults(Request[DefaultsTold], deed="tell default parameters"):
    """What each layer's configuration is when it is given only what it must be given."""

    model: Model


@dataclass(frozen=True, kw_only=True)
class RegionsTold(Reply):
    """Layers that became one: by their names, in the order of the model."""

    regions: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class TellRegions(Request[RegionsTold], deed="tell what it fuses"):
    """What a target makes of a model that is fed tensors of these shapes."""

    model: Model
    shapes: tuple[tuple[int, ...], ...]
