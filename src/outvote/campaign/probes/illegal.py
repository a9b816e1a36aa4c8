"""Illegal values: every target must refuse them with an exception (AUDEE, section 2.3).

A target that accepts what others refuse, hangs or dies is a finding. Other exception types or other
messages are not, and what all targets accept accuses none: it is listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from outvote.campaign.investigate import Conclusion
from outvote.campaign.trial import Answered, Lab
from outvote.core.model import Layer
from outvote.core.protocol import LayerAttempted, Request
from outvote.core.target import Outcome, Run, Target
from outvote.findings.finding import Finding
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools
from outvote.store.rows import Birth


@dataclass(frozen=True)
class Attempt:
    """One illegal value of one parameter of a layer; the others are as they were."""

    layer: Layer
    name: str
    value: Any
    request: Request[LayerAttempted]

    @property
    def told(self) -> str:
        return f"{self.name}={self.value!r} of {self.layer.kind}"


@dataclass(frozen=True)
class IllegalTrial:
    """An attempt in a campaign. It is a test of every target, whatever they do; it never breeds."""

    birth: Birth
    root: int
    subject: Subject
    attempt: Attempt
    changed: tuple[str, ...] = ()
    cost: int = 1
    repeatable: bool = False
    counts: bool = False

    @property
    def number(self) -> int:
        return self.birth.number

    @property
    def new(self) -> str:
        return self.attempt.told

    def request(self, keep: bool) -> Request[LayerAttempted]:
        return self.attempt.request

    def answered(self, runs: Mapping[str, Run], lab: Lab) -> Answered:
        refusals = Refusals(runs)
        found = findings_of(self.attempt, refusals, lab.investigator.targets)
        everywhere = len(refusals.accepted) == len(runs)
        accepted = self.attempt.told if everywhere else ""
        return Answered(runs, refusals.died, True, Conclusion(tuple(found), accepted=accepted))


@dataclass(frozen=True)
class Refusals:
    """What targets did with an illegal value."""

    runs: Mapping[str, Run]

    @property
    def died(self) -> dict[str, Run]:
        return {name: run for name, run in self.runs.items() if run.outcome.is_death}

    @property
    def accepted(self) -> list[str]:
        return [name for name, run in self.runs.items() if run.ok]

    @property
    def refused(self) -> list[str]:
        return [name for name, run in self.runs.items() if not run.ok and name not in self.died]


def draw_attempt(subject: Subject, tools: Tools, rng: np.random.Generator) -> Attempt | None:
    """An illegal value for a layer of the model; None where no layer has a parameter for it."""
    choices = {
        layer.name: found
        for layer in subject.model.layers
        if subject.is_known(layer) and (found := tools.illegal(layer))
    }
    if not choices:
        return None
    layer = subject.model.layer(str(rng.choice(list(choices))))
    name, value = choices[layer.name][int(rng.integers(len(choices[layer.name])))]
    return attempt_on(subject, layer, {**tools.parameters(layer), name: value}, name, tools)


def attempt_on(
    subject: Subject, layer: Layer, parameters: Mapping[str, Any], name: str, tools: Tools
) -> Attempt:
    """The layer with these parameters, of which `name` holds the illegal value."""
    request = tools.attempt(layer, parameters, subject.reads(layer))
    return Attempt(layer, name, parameters[name], request)


def findings_of(attempt: Attempt, seen: Refusals, targets: Mapping[str, Target]) -> list[Finding]:
    """One finding per library that dies, and one for those that accept what others refuse."""
    found = []
    for name, run in seen.died.items():
        word = {Outcome.HANG: "hangs", Outcome.MEMORY: "runs out of memory"}
        found.append(
            _finding(
                attempt,
                "hang" if run.outcome is Outcome.HANG else "crash",
                f"{name} {word.get(run.outcome, 'dies')} on the illegal {attempt.told}",
                (name,),
                targets,
                run.detail,
            )
        )
    refused = seen.refused
    if seen.accepted and refused:
        title = f"{_and(seen.accepted)} accept{'s' * (len(seen.accepted) == 1)} the illegal "
        found.append(
            _finding(
                attempt,
                "illegal",
                f"{title}{attempt.told}, which {_and(refused)} refuse{'s' * (len(refused) == 1)}",
                tuple(seen.accepted),
                targets,
                "\n".join(f"{n}: {seen.runs[n].message[:300]}" for n in refused),
            )
        )
    return found


def _finding(
    attempt: Attempt,
    kind: str,
    title: str,
    guilty: tuple[str, ...],
    targets: Mapping[str, Target],
    detail: str,
) -> Finding:
    libraries = sorted({targets[name].library for name in guilty})
    return Finding(
        kind=kind,
        title=title,
        reason="Every target must refuse this value with an exception; which one, and with which "
        "words, is free.",
        targets=guilty,
        accused=guilty[0] if len(libraries) == 1 else None,
        triage="bug" if len(libraries) == 1 else "unknown",
        dialect=targets[guilty[0]].dialect,
        layer=attempt.layer,
        library=f"{', '.join(libraries)} for {attempt.name}",  # each parameter is its own cause
        detail=detail,
    )


def _and(names: list[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]
