"""A Finding: one cause of disagreement, with who is accused, where, and how far apart."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from outvote.core.dialect import dialect
from outvote.core.events import FindingMet
from outvote.core.exercises import Exercise, PartTold
from outvote.core.model import Layer, Model, digest_of
from outvote.core.outputs import Outputs
from outvote.core.specimen import Specimen
from outvote.core.target import Outcome, Run, Target
from outvote.findings.place import GuiltyPlace
from outvote.judge.observation import Observation, kind_of_failure
from outvote.judge.slopes import Point
from outvote.judge.vote import Vote, vote
from outvote.localize.causal import Cause
from outvote.localize.isolated import Fault
from outvote.localize.layers import Localization

_HEAD = 60  # letters of an error message that tell one from another


@dataclass(frozen=True)
class Proof:
    """The smallest model and input that show a finding, and what the targets make of it."""

    specimen: Specimen
    observed: Observation
    matter: Mapping[str, Any]  # parameters of the layer that the finding needs
    defaults: Mapping[str, Any]  # of those that the layer need not be given
    layers_before: int
    numbers_before: int
    seconds: float
    complete: bool  # False: the time to make it smaller was up
    errors: Mapping[str, float] = field(default_factory=dict)  # distance to the exact result
    source: str = ""  # where the exact result comes from
    expected: Outputs | None = None
    place: GuiltyPlace | None = None  # in the library's own code, that is to blame
    unplaced: str = ""  # why none is known
    causes: tuple[Cause, ...] = ()  # parameters without which targets agree (AUDEE)
    shown: int | None = None  # in how many fresh workers it showed again
    tried: int = 0


@dataclass(frozen=True)
class Stage:
    """Where in training a finding shows, and the exercise that shows it."""

    name: str  # forward, loss, gradient, regulariser, optimiser, clipping, ..., statistics, steps
    subject: str  # the kind of the layer, the loss or the optimiser
    exercise: Exercise | None = None
    part: str = ""
    told: Mapping[str, PartTold] = field(default_factory=dict)  # by target
    expected: Outputs | None = None
    source: str = ""  # where the expected result comes from
    tolerance: float = 0.0
    points: tuple[Point, ...] = ()  # of a gradient: what central differences give


@dataclass(frozen=True)
class Finding:
    """One row of `findings` in result.json, and the evidence behind it."""

    kind: str
    title: str
    reason: str
    targets: tuple[str, ...]
    accused: str | None
    triage: str
    dialect: str  # of the model, and so of the layer
    layer: Layer | None = None
    distance: float | None = None
    metric: str | None = None
    inputs: tuple[int, ...] = ()
    library: str | None = None
    fault: Fault | None = None
    localization: Localization | None = None
    detail: str = ""
    proof: Proof | None = None
    relation: str = ""  # that the accused breaks, where it was held against itself
    stage: Stage | None = None  # of training, where that is where it shows

    @property
    def met(self) -> FindingMet:
        """That it was found, as those are told who follow a run."""
        return FindingMet(self.fingerprint, self.kind, self.triage, self.title, self.accused)

    def but(self, **changes: Any) -> Finding:
        """The same finding, told differently."""
        return replace(self, **changes)

    def covers(self, other: Finding) -> bool:
        """Whether another finding, not examined yet, has this one's cause.

        It has if it fails alike in the same library and kind of layer, given tensors of the same
        types, and has all that matters.
        """
        cause, found = self._cause, other.layer
        if self.proof is None or cause is None or found is None:
            return False
        known = dialect(self.dialect).layers
        alike = (self.kind, self.relation, self.library, known.dtype(cause))
        if alike != (other.kind, other.relation, other.library, known.dtype(found)):
            return False
        if other._reads is not None and self._reads != other._reads:
            return False
        if self.kind == "crash" and _complaint(self) != _complaint(other):
            return False
        if cause.kind != found.kind and not known.contains(found, cause):
            return False
        defaults, config = self.proof.defaults, found.config
        return all(
            config.get(key) == value
            if isinstance(value, str | bool | None)
            else config.get(key) != defaults.get(key)
            for key, value in self.proof.matter.items()
        )

    @property
    def _cause(self) -> Layer | None:
        """The layer that is to blame: of the smallest case, where there is one."""
        if self.proof is not None and len(self.proof.specimen.model.layers) == 1:
            return self.proof.specimen.last
        return self.layer

    @property
    def _reads(self) -> str | None:
        """What is not usual about the tensors that the layer reads; None where it is not known."""
        if self.proof is not None:
            arrays = list(self.proof.specimen.inputs)
        elif self.fault is not None and self.fault.given:
            arrays = [state.array for state in self.fault.given]
        else:
            return None
        unusual = {array.dtype.name for array in arrays if array.dtype.kind != "f"}
        unusual |= {"no instances" for array in arrays if array.shape[:1] == (0,)}
        return ", ".join(sorted(unusual))

    @property
    def parameters(self) -> dict[str, Any] | None:
        """The parameters to blame: those that cure it (AUDEE) and that it cannot do without.

        Where these are none, those of either; all of the layer's where neither is known.
        """
        if self.proof is None:
            return dialect(self.dialect).layers.parameters(self.layer) if self.layer else None
        causes = {cause.parameter: cause.value for cause in self.proof.causes}
        needed = dict(self.proof.matter)
        both = {name: value for name, value in causes.items() if name in needed}
        return both or causes or needed

    @property
    def symptom(self) -> str:
        """What a user sees: finer than the kind of failure."""
        seen = self.proof.observed if self.proof else None
        if self.kind == "inconsistency":
            return "values"
        if self.kind == "shape" and seen is not None and not seen.failures:
            return (
                "type" if len({_forms(_shapes(o)) for o in seen.outputs.values()}) == 1 else "shape"
            )
        if self.kind == "crash":
            runs = seen.failures.values() if seen is not None else ()
            return "death" if any(run.outcome.is_death for run in runs) else "error"
        return "error" if self.kind == "illegal" else self.kind

    @property
    def fingerprint(self) -> str:
        """Identity of the cause, not of the occurrence."""
        who = self.library or sorted(self.targets)
        cause = self._cause
        layer_kind = cause.kind if cause else None
        dtype = dialect(self.dialect).layers.dtype(cause) if cause else None
        matter = _classes(self.proof.matter) if self.proof else None
        types = f"{dtype} of {self._reads}" if self._reads else dtype
        broken = [self.relation] if self.relation else []
        broken += [self.stage.name, self.stage.subject] if self.stage else []
        return digest_of(self.kind, who, layer_kind, matter, types, *broken)[:12]


def _complaint(finding: Finding) -> str:
    return head_of(finding.title.partition(": ")[2])


def head_of(message: str) -> str:
    """The first letters of an error message: numbers, shapes and signs vary from case to case."""
    return "".join(filter(str.isalpha, message))[:_HEAD]


def _classes(matter: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as far as they tell causes apart: words and switches, but no sizes."""
    return {
        key: value if isinstance(value, str | bool | None) else "other"
        for key, value in sorted(matter.items())
    }


def findings_from_faults(
    localization: Localization, targets: Mapping[str, Target], inputs: Sequence[int]
) -> list[Finding]:
    """One finding per (accused library, layer kind, kind of failure), first faulty layer first.

    What a target's own precision explains stands apart: behind it may be what it does not.
    """
    grouped: dict[tuple[str | None, str, str, str], list[Fault]] = {}
    for fault in localization.faults:
        for library in _accused_libraries(fault, targets):
            accused = _guilty(fault, library, targets)[:1]
            deed = fault.deed_of(*accused or (None,))
            own_precision = deed.triage == "precision"  # then it is one cause, whatever the layers
            layer_kind = "" if own_precision else fault.layer.kind
            grouped.setdefault((library, layer_kind, deed.kind, deed.triage), []).append(fault)
    return [
        _from_fault(faults[0], library, faults[1:], localization, targets, inputs)
        for (library, *_), faults in grouped.items()
    ]


def _accused_libraries(fault: Fault, targets: Mapping[str, Target]) -> Iterable[str | None]:
    """Targets of one library that are outvoted together are one cause; so are patched ones."""
    if not fault.vote.decided:
        return [None]
    kind = fault.layer.kind
    return dict.fromkeys(cause_of(targets[name], kind) for name in fault.vote.outvoted)


def _guilty(fault: Fault, library: str | None, targets: Mapping[str, Target]) -> list[str]:
    kind = fault.layer.kind
    return [name for name in fault.vote.outvoted if cause_of(targets[name], kind) == library]


def cause_of(target: Target, layer_kind: str | None) -> str:
    """Whose code is at fault: a setup script's, a transformation's, or that of who computes."""
    if target.setup is not None:
        return f"{target.library} with {target.setup.name}"
    if target.original:
        return f"{target.mode} by {target.package}"
    return target.implementation_of(layer_kind)


def _from_fault(
    fault: Fault,
    library: str | None,
    others: Sequence[Fault],
    localization: Localization,
    targets: Mapping[str, Target],
    inputs: Sequence[int],
) -> Finding:
    layer = fault.layer
    guilty = _guilty(fault, library, targets)
    involved = guilty or [name for group in fault.vote.groups for name in group]
    accused = guilty[0] if guilty else None
    deed = fault.deed_of(accused)
    unlike = (
        "an empty result, and the others refuse," if fault.is_refused else "another shape or dtype"
    )
    place = f"{layer.kind} layer {layer.name!r}"
    what = {
        "inconsistency": f"differs by {deed.distance:.2g} (relative)",
        "nan": f"{'gives' if _has_nan(fault, guilty) else 'drops'} NaN, unlike the others,",
        "shape": f"gives {unlike}",
        "crash": "fails",
        "hang": "hangs",
    }[deed.kind]
    title = f"{accused} {what} in {place}" if accused else f"{place}: {_parted(fault)}"
    said = fault.failures.get(accused or "")
    if said is not None:  # told as of a whole model, so that one covers the other
        title += f": {_shorten(said)}"
    reason = (
        f"The layer was run alone on each target with the tensors of {localization.reference}; "
        f"{fault.vote.reason}. Rounding of its input explains at most {fault.tolerance:.2g}."
    )
    for name in guilty:
        if name in localization.ended:
            reason += f" What {name} computes by itself goes no further than"
            reason += f" {_shorten(localization.ended[name])}."
    if others:
        kinds = {layer.kind, *(other.layer.kind for other in others)}
        named = f"{layer.kind} " if len(kinds) == 1 else ""
        more, one = f"{len(others)} more {named}layer{'s' * (len(others) > 1)}", len(others) == 1
        reason += f" {more} show{'s' * one} the same."
    return Finding(
        kind=deed.kind,
        title=title,
        reason=reason,
        targets=tuple(involved),
        accused=accused,
        triage=deed.triage if accused else "unknown",
        dialect=next(iter(targets.values())).dialect,
        layer=layer,
        distance=deed.distance if math.isfinite(deed.distance) else None,
        metric="relative" if deed.kind == "inconsistency" else None,
        inputs=tuple(inputs),
        library=library,
        fault=fault,
        localization=localization,
    )


def title_of(kind: str, accused: str | None, layer: Layer, seen: Observation, alone: bool) -> str:
    """One line that says who does what where; not `alone`: it takes several layers."""
    place = f"{layer.kind} layer {layer.name!r}{'' if alone else ', in the whole graph only'}"
    return title_at(kind, accused, place, seen)


def title_at(kind: str, accused: str | None, place: str, seen: Observation) -> str:
    """One line that says who does what at a place."""
    if accused is None:
        return f"{place}: {_parted(seen)}"
    has_nan = accused in seen.outputs and _any_nan(seen.outputs[accused].arrays)
    if kind in ("crash", "hang") and accused in seen.failures:
        run = seen.failures[accused]
        does = "hangs" if kind == "hang" else "fails"
        return f"{accused} {does} in {place}: {_shorten(run.message)}"
    if kind == "shape" and seen.failures:
        return f"{accused} gives an empty result, and the others refuse, in {place}"
    far = f"by {seen.distance:.2g} (relative)" if np.isfinite(seen.distance) else "in infinities"
    what = {
        "inconsistency": f"differs {far}",
        "nan": f"{'gives' if has_nan else 'drops'} NaN, unlike the others,",
    }.get(kind) or _other_form(accused, seen)
    return f"{accused} {what} in {place}"


def _parted(seen: Observation | Fault) -> str:
    """What each side gives, where nobody is accused."""
    sides: dict[tuple[str, str], list[str]] = {}
    for group in seen.vote.groups:
        sides.setdefault(_given(group, seen), []).extend(group)
    if len(sides) > 1:
        return ", ".join(
            f"{_told(names)} {verb}{'' if len(names) > 1 else 's'} {what}"
            for (verb, what), names in sides.items()
        )
    names = _told([name for group in seen.vote.groups for name in group])
    far = seen.distance and np.isfinite(seen.distance)
    return f"{names} disagree{f' by {seen.distance:.2g} (relative)' if far else ''}"


def _given(group: Sequence[str], seen: Observation | Fault) -> tuple[str, str]:
    """What one side of several does, as far as it takes no number to say it."""
    failures = [seen.failures[name] for name in group if name in seen.failures]
    if failures:
        text = failures[0] if isinstance(failures[0], str) else failures[0].message
        return "fail", f"({_shorten(text, 60)})"
    found = next((seen.outputs[name] for name in group if name in seen.outputs), None)
    forms = {(*_shapes(outputs), *outputs.dtypes) for outputs in seen.outputs.values()}
    if found is None or (seen.failures and len(forms) == 1):
        return "compute", "it"
    if seen.kind == "nan":
        return "give", "NaN" if _any_nan(found.arrays) else "numbers"
    own = _shapes(found)
    alike = all(_shapes(outputs) == own for outputs in seen.outputs.values())
    return "give", _forms(found.dtypes if alike else own)


def _other_form(accused: str, seen: Observation) -> str:
    """What an accused target gives that is of another shape or type, and what the others give."""
    right = [n for n in seen.vote.majority if n in seen.outputs] or [
        n for n in seen.outputs if n != accused
    ]
    if accused not in seen.outputs or not right:
        return "gives another shape or dtype"
    mine, theirs = seen.outputs[accused], seen.outputs[right[0]]
    shapes, others = _shapes(mine), _shapes(theirs)
    if shapes != others:
        return f"gives {_forms(shapes)} instead of {_forms(others)}"
    if mine.dtypes == theirs.dtypes:  # a third target differs in its type
        return "differs from the others"
    return f"gives {_forms(mine.dtypes)} instead of {_forms(theirs.dtypes)}"


def _shapes(outputs: Outputs) -> list[tuple[int, ...]]:
    return [array.shape for array in outputs.arrays]


def _forms(found: Sequence[object]) -> str:
    return ", ".join(dict.fromkeys(map(str, found))) if found else "nothing"


def _any_nan(arrays: Iterable[Any]) -> bool:
    return any(array.dtype.kind == "f" and bool(np.isnan(array).any()) for array in arrays)


def _has_nan(fault: Fault, names: Sequence[str]) -> bool:
    known = [fault.outputs[name] for name in names if name in fault.outputs]
    return _any_nan(array for outputs in known for array in outputs.arrays)


def findings_from_failures(
    runs: Mapping[str, Run], targets: Mapping[str, Target], model: Model
) -> list[Finding]:
    """Targets that crashed, hung or raised where others finished. Clean gaps are not findings."""
    finished = [name for name, run in runs.items() if run.ok]
    failed = {
        name: run
        for name, run in runs.items()
        if not run.ok and run.outcome is not Outcome.UNSUPPORTED
    }
    found: dict[tuple[str, str], Finding] = {}
    for name, run in failed.items():
        layer = next((item for item in model.layers if item.name == run.layer), None)
        kind = layer.kind if layer else None
        voters = {n: targets[n] for n in [*finished, name]}
        agreements = [(finished[0], other) for other in finished[1:]]
        voted = vote(voters, agreements, kind)
        found.setdefault(
            (cause_of(targets[name], kind), run.outcome), _failure(run, layer, voted, targets[name])
        )
    return list(found.values())


def _failure(run: Run, layer: Layer | None, voted: Vote, target: Target) -> Finding:
    place = f" in {layer.kind} layer {layer.name!r}" if layer else ""
    decided = run.target in voted.outvoted
    text = _shorten(run.message)
    return Finding(
        kind=kind_of_failure(run),
        title=f"{run.target} fails{place}: {text}",
        reason=f"Outcome {run.outcome.value}; {voted.reason}.",
        targets=(run.target,),
        accused=run.target if decided else None,
        triage="bug" if decided else "unknown",
        dialect=target.dialect,
        layer=layer,
        library=cause_of(target, layer.kind if layer else None),
        detail=run.detail,
    )


# What frameworks wrap around the sentence that matters.
_WRAPPING = re.compile(
    r"Exception encountered when calling [\w.]+\(\)\.|\{\{function_node [^}]*\}\}|"
    r"Arguments received by .*|\[Op:\w+\] name:.*|in user code:\s+File .*\n\s*\n",
    re.DOTALL,
)


_TWICE = re.compile(r"^(\w+: )\1")


def _shorten(text: str, most: int = 160) -> str:
    line = _TWICE.sub(r"\1", " ".join(_WRAPPING.sub("", text).split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def _told(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]
