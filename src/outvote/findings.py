"""A Finding: one cause of disagreement, with who is accused, where, and how far apart."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from outvote.core.model import Layer, Model, digest_of
from outvote.core.target import Outcome, Run, Target
from outvote.judge.vote import Vote, vote
from outvote.localize.isolated import Fault
from outvote.localize.localize import Localization

_NOT_PARAMETERS = ("name", "trainable", "dtype")
_NOT_PARAMETER_ENDINGS = ("_initializer", "_regularizer", "_constraint")
_KIND_OF_OUTCOME = {Outcome.HANG: "hang"}


@dataclass(frozen=True)
class Finding:
    """One row of `findings` in result.json, and the evidence behind it."""

    kind: str
    title: str
    reason: str
    targets: tuple[str, ...]
    accused: str | None
    triage: str
    layer: Layer | None = None
    distance: float | None = None
    metric: str | None = None
    inputs: tuple[int, ...] = ()
    library: str | None = None
    fault: Fault | None = None
    localization: Localization | None = None
    detail: str = ""

    def but(self, **changes: Any) -> Finding:
        """The same finding, told differently."""
        return replace(self, **changes)

    @property
    def fingerprint(self) -> str:
        """Identity of the cause, not of the occurrence."""
        dtype = self.layer.config.get("dtype") if self.layer else None
        who = self.library or sorted(self.targets)
        layer_kind = self.layer.kind if self.layer else None
        return digest_of(self.kind, who, layer_kind, dtype)[:12]


def findings_from_faults(
    localization: Localization, targets: Mapping[str, Target], inputs: Sequence[int]
) -> list[Finding]:
    """One finding per (accused library, layer kind, kind of failure), first faulty layer first."""
    grouped: dict[tuple[str | None, str, str], list[Fault]] = {}
    for fault in localization.faults:
        for library in _accused_libraries(fault, targets):
            accused = _guilty(fault, library, targets)[:1]
            kind = fault.deed_of(*accused or (None,)).kind
            grouped.setdefault((library, fault.layer.kind, kind), []).append(fault)
    return [
        _from_fault(faults[0], library, len(faults) - 1, localization, targets, inputs)
        for (library, _, _), faults in grouped.items()
    ]


def _accused_libraries(fault: Fault, targets: Mapping[str, Target]) -> Iterable[str | None]:
    """Targets of one library that are outvoted together are one cause; so are patched ones."""
    if not fault.vote.decided:
        return [None]
    kind = fault.layer.kind
    return dict.fromkeys(_cause(targets[name], kind) for name in fault.vote.outvoted)


def _guilty(fault: Fault, library: str | None, targets: Mapping[str, Target]) -> list[str]:
    kind = fault.layer.kind
    return [name for name in fault.vote.outvoted if _cause(targets[name], kind) == library]


def _cause(target: Target, layer_kind: str | None) -> str:
    """Whose code is at fault: a setup script's, or the library's that computes such layers."""
    if target.setup is not None:
        return f"{target.library} with {target.setup.name}"
    return target.implementation_of(layer_kind)


def _from_fault(
    fault: Fault,
    library: str | None,
    same_kind: int,
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
        "crash": f"fails ({_shorten('; '.join(fault.failures.values()))})",
    }[deed.kind]
    title = f"{accused} {what} in {place}" if accused else f"{place}: {_told(involved)} disagree"
    reason = (
        f"The layer was run alone on each target with the tensors of {localization.reference}; "
        f"{fault.vote.reason}. Rounding of its input explains at most {fault.tolerance:.2g}."
    )
    if same_kind:
        more = f"layer{'s' * (same_kind > 1)}"
        reason += f" {same_kind} more {layer.kind} {more} show{'s' * (same_kind == 1)} the same."
    return Finding(
        kind=deed.kind,
        title=title,
        reason=reason,
        targets=tuple(involved),
        accused=accused,
        triage=deed.triage if accused else "unknown",
        layer=layer,
        distance=deed.distance if math.isfinite(deed.distance) else None,
        metric="relative" if deed.kind == "inconsistency" else None,
        inputs=tuple(inputs),
        library=library,
        fault=fault,
        localization=localization,
    )


def _has_nan(fault: Fault, names: Sequence[str]) -> bool:
    known = [fault.outputs[name] for name in names if name in fault.outputs]
    arrays = [array for outputs in known for array in outputs.arrays]
    return any(array.dtype.kind == "f" and bool(np.isnan(array).any()) for array in arrays)


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
            (_cause(targets[name], kind), run.outcome), _failure(run, layer, voted, targets[name])
        )
    return list(found.values())


def _failure(run: Run, layer: Layer | None, voted: Vote, target: Target) -> Finding:
    place = f" in {layer.kind} layer {layer.name!r}" if layer else ""
    decided = run.target in voted.outvoted
    text = _shorten(run.message)
    return Finding(
        kind=_KIND_OF_OUTCOME.get(run.outcome, "crash"),
        title=f"{run.target} fails{place}: {text}",
        reason=f"Outcome {run.outcome.value}; {voted.reason}.",
        targets=(run.target,),
        accused=run.target if decided else None,
        triage="bug" if decided else "unknown",
        layer=layer,
        library=_cause(target, layer.kind if layer else None),
        detail=run.detail,
    )


def parameters_of(layer: Layer) -> dict[str, Any]:
    """The configuration that shapes what a layer computes."""
    return {
        key: value
        for key, value in layer.config.items()
        if key not in _NOT_PARAMETERS and not key.endswith(_NOT_PARAMETER_ENDINGS)
    }


# What frameworks wrap around the sentence that matters.
_WRAPPING = re.compile(
    r"Exception encountered when calling [\w.]+\(\)\.|\{\{function_node [^}]*\}\}|"
    r"Arguments received by .*|\[Op:\w+\] name:.*",
    re.DOTALL,
)


def _shorten(text: str, most: int = 160) -> str:
    line = " ".join(_WRAPPING.sub("", text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _told(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]
