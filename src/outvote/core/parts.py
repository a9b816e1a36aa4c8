"""The parts of a dialect: what each module of a wing offers, under the name in quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from outvote.bench.relation import Relation
    from outvote.core.arrays import Array
    from outvote.core.blobs import BlobStore
    from outvote.core.exercises import StageCase, Update
    from outvote.core.model import Input, Layer, Model, Ref, Weight
    from outvote.core.protocol import ModelRead
    from outvote.core.sifted import Sifted, SuspectCase
    from outvote.core.specimen import Specimen
    from outvote.core.states import State
    from outvote.core.target import Target
    from outvote.core.train_protocol import Named, StagesListed
    from outvote.findings.finding import Finding, Stage
    from outvote.localize.isolated import Fault
    from outvote.mutate.drawn import DrawnModel, LayerWish
    from outvote.mutate.registry import Rule
    from outvote.mutate.subject import Subject
    from outvote.mutate.tools import Tools
    from outvote.run.pool import Pool
    from outvote.triage.reductions import Reduction


class Files(Protocol):
    """`files`: model files before a framework sees them."""

    SUFFIXES: tuple[str, ...]
    CASE_FILE: str  # under which the model of a finding is kept
    IN_PARTS: bool  # whether a model may keep weights in other files beside it
    NAMED_DIMS: bool  # whether free dimensions have names, by which `--dim` sets them

    def inspect(self, path: Path, weights: Path | None) -> None:
        """Raise UsageError, with a remedy, for what is no readable and harmless model file."""
        ...

    def saved(self, live: Any, path: Path) -> Path | None:
        """A model that lives in memory, saved under that name; None: not one of this dialect."""
        ...


class Live(Protocol):
    """`live`: layers and functions in the memory of the user's process."""

    def saved_call(self, live: Any, inputs: Sequence[Array], path: Path) -> Path | None:
        """The model that calls it with tensors like these, saved; None: not of this dialect."""
        ...

    def itself(self, path: Path) -> Target | None:
        """What was saved there, as a target that is compared too; None: workers load it anyway."""
        ...


class Recipe(Protocol):
    """How an environment that needs more than a list of requirements is installed."""

    stages: tuple[tuple[str, ...], ...]

    @property
    def finish(self) -> Callable[[Path], None]: ...

    def interpreter(self, named: Path | None) -> Path: ...


class Targets(Protocol):
    """`targets`: the implementations that understand such models."""

    BUILT_IN: Mapping[str, Target]
    DEFAULT: tuple[str, ...]  # compared when the user names none, as far as installed
    SEARCHED: tuple[str, ...]  # the same for campaigns, where slow ones cost most
    PACKAGE: str  # whose releases `bisect` walks through by default; "": the target's own
    OVERLAID: tuple[str, ...]  # packages of Python files alone, laid over what is installed
    RECIPES: Mapping[str, Recipe]

    def with_versions(self, base: Target, requirements: tuple[str, ...], name: str) -> Target: ...

    def helpers(self, targets: Iterable[Target]) -> list[Target]:
        """Targets besides the chosen ones that read and write model files for them."""
        ...

    def reading_order(self, target: Target) -> tuple[Any, ...]:
        """The smallest reads the model and says what changed layers become."""
        ...

    def probe(self) -> tuple[Model, list[Array], Array]:
        """A model, inputs and the right answer: is a target in working order?"""
        ...


class Layers(Protocol):
    """`layers`: what the driver must know of a layer."""

    def parameters(self, layer: Layer) -> dict[str, Any]:
        """The parameters that may matter to a result."""
        ...

    def dtype(self, layer: Layer) -> str | None:
        """The type that the layer computes in; None where it does not say."""
        ...

    def contains(self, layer: Layer, inner: Layer) -> bool:
        """Whether a layer computes what the other one, alone, computes too."""
        ...

    def renamed(self, layer: Layer, name: str) -> Layer: ...

    def stale(self, layer: Layer) -> Layer:
        """The layer without what holds for its old shapes and parameters alone."""
        ...

    def makes_masks(self, layer: Layer) -> bool: ...

    def masked(self, layer: Layer, masks: Sequence[Any]) -> dict[str, Any]:
        """The arguments that give the layer a mask, or None, for each tensor that it reads."""
        ...

    def vocabulary(self, model: Model, item: Input) -> int:
        """How many different integers an input may hold."""
        ...

    def words(self, model: Model, item: Input) -> Sequence[str]:
        """Texts that an input of texts may hold; none: such inputs cannot be given."""
        ...

    def is_classifier(self, model: Model) -> bool:
        """Whether a single output is a probability, not a value."""
        ...


@dataclass(frozen=True)
class ChannelReader:
    """How a layer reads channels: which of its weights, along which axis, of which tensor axis."""

    weight: int
    axis: int
    of: int


class NeuronPlaces(Protocol):
    """`neurons`: where the neurons of layers are, for LEMON's inner-layer rules."""

    def neuron_axes(self, layer: Layer, weight: Weight) -> tuple[int, ...]:
        """The axes of a weight that number the neurons of its layer; none: it feeds none alone."""
        ...

    def is_statistic(self, layer: Layer, weight: Weight) -> bool:
        """Whether a weight is no connection, but a running mean or variance."""
        ...

    def channel_axis(self, layer: Layer) -> int:
        """Along which the neurons of a layer lie in what it gives."""
        ...

    def reader(self, layer: Layer) -> ChannelReader | None:
        """How a layer weighs each channel that it reads; None: it does not."""
        ...

    def keeps_channels(self, layer: Layer) -> bool:
        """Whether each channel of what a layer gives is made of the same one it reads alone."""
        ...

    def flattens(self, layer: Layer) -> bool: ...

    def flat_rows(self, chosen: Array, count: int, repeats: int) -> Array:
        """Where some of so many channels are in a tensor that was laid flat."""
        ...


class ActivationPlaces(Protocol):
    """`activations`: layers that are activation functions and nothing else."""

    def activations_of(self, subject: Subject) -> list[Layer]: ...

    def others(self, subject: Subject, layer: Layer, tools: Any) -> list[Layer]:
        """What else may stand in the place of one: the same layer, as another activation."""
        ...


class Logits(Protocol):
    """`logits`: the tensor before the last squashing function."""

    def logits_apart(self, model: Model) -> tuple[Model, Ref]: ...


class Reference(Protocol):
    """`reference`: exact results, by formulas of our own."""

    def reference(
        self, layer: Layer, weights: Sequence[Array], given: Sequence[State]
    ) -> list[Array] | None:
        """What the layer gives, in float64; None where it is not covered."""
        ...

    def is_exact(self, kind: str, covered: bool) -> bool:
        """Whether such a layer moves numbers and computes none, or none that rounding changes.

        `covered`: a formula gives its result here.
        """
        ...


class Sums(Protocol):
    """`sums`: what long sums come to in the plainest way to compute them."""

    def in_turn(
        self, layer: Layer, weights: Sequence[Array], given: Sequence[State]
    ) -> list[list[Array]]:
        """What the layer gives if terms are added one after the other in its own type, in each
        order that is usual; none where it is no sum."""
        ...


class Widening(Protocol):
    """`widen`: the same computation in float64."""

    def float64_of(self, specimen: Specimen, blobs: BlobStore) -> Specimen: ...


class Mutation(Protocol):
    """`mutate`: what mutants of such models are made of."""

    def mutation_rules(self) -> Mapping[str, Rule]: ...

    def mutation_tools(self, pool: Pool, reader: str) -> Tools: ...


class OpenSieve(Protocol):
    """Draws cases of a dialect's own, runs them on targets in bulk and compares them cheaply."""

    def sifted(self, first: int, end: int) -> Iterator[Sifted]:
        """Some cases at a time, from a number on, and none from the other on."""
        ...

    def read(self, case: SuspectCase) -> ModelRead | None:
        """A case as a model; None where it is refused."""
        ...

    def close(self) -> None: ...


class Bulk(Protocol):
    """`bulk`: cases by the thousand, for campaigns that begin with no model."""

    def open_sieve(
        self, pool: Pool, targets: Sequence[Target], reader: str, seed: int
    ) -> OpenSieve: ...


class Draws(Protocol):
    """`draws`: small models of what a test asks for, layer by layer."""

    def optional_parameters(self, tools: Tools, kind: str) -> Sequence[str]:
        """The parameters of a kind that need not be given."""
        ...

    def parameters(self, tools: Tools, wish: LayerWish) -> dict[str, Any]:
        """What is drawn for a layer on the first tensor that its kind takes."""
        ...

    def model(self, tools: Tools, wishes: Sequence[LayerWish]) -> DrawnModel | None:
        """One layer behind the other; None where the first is refused."""
        ...


class Reductions(Protocol):
    """`reductions`: ways to make layers smaller and plainer."""

    REDUCTIONS: Sequence[Reduction]


class Specification(Protocol):
    """`specification`: where it is written what layers should do."""

    def link(self, layer: Layer) -> str | None:
        """The page about such a layer; None where there is none."""
        ...

    def refusal(self, pool: Pool, worker: str, specimen: Specimen) -> str | None:
        """Why the specification's own checker, in a worker, will not have what is run."""
        ...


class Relations(Protocol):
    """`relations`: other ways to the same result that only such models have."""

    def own_relations(self) -> Mapping[str, Relation]: ...

    def couples_instances(self, layer: Layer) -> bool:
        """Whether what a layer gives for one instance depends on the others, as it should."""
        ...


class Regions(Protocol):
    """`regions`: what a compiler made one of."""

    def region_of(
        self, pool: Pool, target: str, model: Model, inputs: Sequence[Array], layer: str
    ) -> tuple[str, ...]:
        """The layers that a target computes at once with that one, itself included, in order."""
        ...


SHORT = 12  # lines that a maintainer reads at a glance


class Script(Protocol):
    """`script`: the text of repro.py, which needs nothing of ours."""

    def script(
        self, finding: Finding, targets: Mapping[str, Target], pool: Pool, folder: Path
    ) -> str | None:
        """The script; arrays that are too long for it go into the folder. None: it cannot be."""
        ...

    def short(self, finding: Finding, targets: Mapping[str, Target], pool: Pool) -> str | None:
        """What one would paste into an issue: at most `SHORT` lines that print the wrong result
        of the accused, and the right one. None: it takes more."""
        ...

    def script_of_file(self, fault: Fault, targets: Mapping[str, Target], folder: Path) -> str:
        """A script for the model file in the folder, where a plain one cannot be."""
        ...


class RelationScript(Protocol):
    """`relation_script`: the text of repro.py for a relation that a target breaks."""

    def relation_script(
        self, finding: Finding, targets: Mapping[str, Target], pool: Pool, folder: Path
    ) -> str | None:
        """One way to a result, and the other. None: it cannot be, or takes too much."""
        ...


class StageCases(Protocol):
    """`stage_cases`: losses, optimisers and what else trains, as cases of their own."""

    def drawn_stage(
        self, listed: StagesListed, blobs: BlobStore, rng: np.random.Generator
    ) -> StageCase:
        """One of what a library says that it has, with parameters and arrays."""
        ...


class StageScript(Protocol):
    """`stage_script`: the text of repro.py for a stage of training."""

    def stage_script(
        self,
        finding: Finding,
        stage: Stage,
        targets: Mapping[str, Target],
        blobs: BlobStore,
        folder: Path,
    ) -> str | None:
        """The script; arrays that are too long for it go into the folder. None: it cannot be."""
        ...


class LessonWords(Protocol):
    """`lesson`: losses and optimisers, for training."""

    AS_WRITTEN: bool  # a model says itself how it trains: that is what all of a check runs

    def named(self, text: str, option: str) -> Named:
        """A loss or an optimiser as the user names it."""
        ...

    def loss_for(self, output: Array, labels: Array | None) -> Named:
        """A loss that fits what a model gives and what it should give."""
        ...

    def truth_for(
        self,
        loss: Named,
        output: Array,
        labels: Array | None,
        given: Array | None,
        rng: np.random.Generator,
    ) -> Array:
        """What a loss takes for the truth; drawn where none is known."""
        ...

    def features(self, optimizer: Named) -> Mapping[str, Named]:
        """The optimiser without each thing that it does beside its own rule, by what that is."""
        ...

    def exact_update(self, update: Update) -> tuple[Array, ...] | None:
        """What an optimiser makes of weights by our own formulas, after each step; None: there
        is none."""
        ...

    def passed_on(self, model: Model) -> Model | None:
        """The model with its output passed on, so that a loss reads no logits behind it; None:
        it has no such output."""
        ...

    def is_regularised(self, layer: Layer) -> bool:
        """Whether a layer adds something to the loss."""
        ...

    def constraint_of(self, layer: Layer, weight: str) -> Named | None:
        """What a weight is held to after an update."""
        ...

    def looked_up(self, model: Model, layer: Layer, inputs: Sequence[Array]) -> Array | None:
        """The rows of a weight that alone get gradients; None: all do."""
        ...


class Zoo(Protocol):
    """`zoo`: seed models by name."""

    def members_of(self, name: str) -> tuple[str, ...]:
        """The models of a group; any other name stands for itself."""
        ...

    def has(self, name: str) -> bool: ...

    def entries(self, names: Sequence[str] | None = None) -> list[Any]:
        """All models, or those of these names and groups, with what is known of each."""
        ...

    def workshop(self) -> Any:
        """Builds and trains them; for `outvote zoo`."""
        ...

    def seed_file(self, name: str) -> tuple[Path, Path]:
        """The model and the data file of that name, built if they are not there yet."""
        ...
