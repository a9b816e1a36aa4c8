"""What a dialect is: the vocabulary that a model is written in, and everything that knows it.

A dialect is a folder in `outvote.dialects`, its wing. Its parts are its modules, found by
their names; what each offers stands in `core/parts.py`. Neutral code asks for a part and never
imports a wing. A part that a wing does not have is told in a sentence: nobody else's is taken.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from outvote.core.errors import UsageError
from outvote.core.given import require_file
from outvote.core.model import Layer, digest_of
from outvote.core.parts import (
    ActivationPlaces,
    Bulk,
    Draws,
    Files,
    Layers,
    LessonWords,
    Live,
    Logits,
    Mutation,
    NeuronPlaces,
    Reductions,
    Reference,
    Regions,
    Relations,
    RelationScript,
    Script,
    Specification,
    StageCases,
    StageScript,
    Sums,
    Targets,
    Widening,
    Zoo,
)

if TYPE_CHECKING:
    from outvote.triage.reductions import Reduction


class Dialect:
    """A wing, by its parts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._package = f"outvote.dialects.{name}"

    def has(self, part: str) -> bool:
        return part in self._parts

    @cached_property
    def _parts(self) -> frozenset[str]:
        folder = importlib.import_module(self._package).__path__
        return frozenset(item.name for item in pkgutil.iter_modules(folder))

    def part(self, name: str, purpose: str) -> Any:
        """The module of that name; a dialect that has none cannot do what it is for."""
        if not self.has(name):
            raise UsageError(f"the dialect {self.name} has no {name}: {purpose} is not to be had")
        return importlib.import_module(f"{self._package}.{name}")

    @property
    def folder(self) -> Path:
        """Where the wing keeps its data: templates, known differences."""
        return Path(str(importlib.import_module(self._package).__path__[0]))

    @property
    def files(self) -> Files:
        return cast(Files, self.part("files", "reading model files"))

    @property
    def targets(self) -> Targets:
        return cast(Targets, self.part("targets", "running models"))

    @property
    def layers(self) -> Layers:
        return cast(Layers, self.part("layers", "looking at layers"))

    @property
    def neurons(self) -> NeuronPlaces:
        return cast(NeuronPlaces, self.part("neurons", "changing neurons"))

    @property
    def activations(self) -> ActivationPlaces:
        return cast(ActivationPlaces, self.part("activations", "changing activations"))

    @property
    def logits(self) -> Logits:
        return cast(Logits, self.part("logits", "a search by logits"))

    @property
    def reference(self) -> Reference | None:
        return cast(Reference | None, self._optional("reference"))

    @property
    def sums(self) -> Sums | None:
        return cast(Sums | None, self._optional("sums"))

    @property
    def widening(self) -> Widening | None:
        return cast(Widening | None, self._optional("widen"))

    @property
    def mutation(self) -> Mutation:
        return cast(Mutation, self.part("mutate", "mutating models"))

    @property
    def bulk(self) -> Bulk:
        return cast(Bulk, self.part("bulk", "a campaign without seeds"))

    @property
    def reductions(self) -> Sequence[Reduction]:
        found: Reductions | None = self._optional("reductions")
        return found.REDUCTIONS if found is not None else ()

    @property
    def specification(self) -> Specification | None:
        return cast(Specification | None, self._optional("specification"))

    @property
    def relations(self) -> Relations | None:
        return cast(Relations | None, self._optional("relations"))

    @property
    def regions(self) -> Regions | None:
        return cast(Regions | None, self._optional("regions"))

    @property
    def script(self) -> Script | None:
        return cast(Script | None, self._optional("script"))

    @property
    def live(self) -> Live | None:
        return cast(Live | None, self._optional("live"))

    @property
    def lesson(self) -> LessonWords:
        return cast(LessonWords, self.part("lesson", "training"))

    @property
    def stage_cases(self) -> StageCases | None:
        return cast(StageCases | None, self._optional("stage_cases"))

    @property
    def relation_script(self) -> RelationScript | None:
        return cast(RelationScript | None, self._optional("relation_script"))

    @property
    def stage_script(self) -> StageScript | None:
        return cast(StageScript | None, self._optional("stage_script"))

    @property
    def draws(self) -> Draws:
        return cast(Draws, self.part("draws", "drawing models in tests"))

    @property
    def zoo(self) -> Zoo:
        return cast(Zoo, self.part("zoo", "models by name"))

    def _optional(self, name: str) -> Any:
        return self.part(name, "") if self.has(name) else None


def dialect_names() -> list[str]:
    """All dialects there are, by their folders."""
    from outvote import dialects

    return sorted(item.name for item in pkgutil.iter_modules(dialects.__path__) if item.ispkg)


@cache
def dialect(name: str) -> Dialect:
    """The dialect of that name."""
    known = dialect_names()
    if name not in known:
        raise UsageError(f"there is no dialect {name!r}; there are {', '.join(known)}")
    return Dialect(name)


def signature(spoken: str, layer: Layer) -> str:
    """Layers that would show the same fault: same kind, same parameters."""
    known = dialect(spoken).layers
    return digest_of(layer.kind, known.parameters(layer), known.dtype(layer))


def dialects() -> list[Dialect]:
    return [dialect(name) for name in dialect_names()]


def dialect_of(path: Path) -> Dialect:
    """The dialect of a model file, by its ending."""
    every = {suffix: wing for wing in dialects() for suffix in wing.files.SUFFIXES}
    if path.suffix not in every:
        require_file(path)
        raise UsageError(
            f"{path} is not a model file by its ending {path.suffix!r}; "
            f"expected one of {', '.join(every)}"
        )
    return every[path.suffix]


def inspect(path: Path, weights: Path | None = None) -> Dialect:
    """The dialect of a model file that is there, whole, and harmless to open."""
    wing = dialect_of(path)
    wing.files.inspect(path, weights)
    return wing


def case_in(folder: Path) -> tuple[Path, Path]:
    """The model and the inputs in the folder of a finding."""
    inputs = folder / "inputs.npz"
    names = [wing.files.CASE_FILE for wing in dialects()]
    model = next((folder / name for name in names if (folder / name).is_file()), None)
    if model is None or not inputs.is_file():
        raise UsageError(
            f"{folder} holds no case: it has no {' or '.join(names)} with inputs.npz; "
            "give a folder findings/<fingerprint> of a finding with a repro"
        )
    return model, inputs


def zoos() -> list[Zoo]:
    return [wing.zoo for wing in dialects() if wing.has("zoo")]


def zoo_of(name: str) -> Zoo:
    """The zoo that has a model or a group of that name; the first one's, to say that none has."""
    return next((zoo for zoo in zoos() if zoo.has(name)), zoos()[0])
