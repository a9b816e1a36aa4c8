"""What a campaign tries on all targets: an initial model, a mutant, or an illegal value.

The loop treats them alike: each knows what to ask the targets, and what their answers come to.
Illegal values stand in `probes/illegal.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from outvote.campaign.contradictions import contradictions
from outvote.campaign.investigate import Conclusion, Investigator
from outvote.campaign.oracle import Judged, Pair, judge
from outvote.campaign.oracles import CampaignOracle
from outvote.campaign.performance.stopwatch import Stopwatch
from outvote.campaign.runner import ModelRun, affordable_rows, inside
from outvote.campaign.seeds import Seed
from outvote.core.arrays import Array
from outvote.core.model import Model
from outvote.core.protocol import Request, RunModel
from outvote.core.target import Run
from outvote.judge.compare import Settings
from outvote.mutate.subject import Subject
from outvote.store.rows import Birth
from outvote.store.store import Row

_MOST_LETTERS = 500  # of a message, in the store


@dataclass(frozen=True)
class Lab:
    """Who looks into what is odd, and by which settings it is odd."""

    investigator: Investigator
    oracles: Sequence[CampaignOracle]
    stopwatch: Stopwatch
    settings: Settings


@dataclass(frozen=True)
class Answered:
    """What the targets' answers to one trial come to."""

    runs: Mapping[str, Run]
    failed: Mapping[str, Run]
    valid: bool  # whether it was a test of any target
    conclusion: Conclusion
    acc: float | None = None
    mad: Mapping[Pair, Array] = field(default_factory=dict)  # D_MAD of each pair, by input
    network: str = ""  # identity of the model that was run, with its weights
    odd: Judged | None = None  # what is not looked into yet: targets part, or some fail

    def showing(self, again: frozenset[str]) -> Answered:
        """The same, and findings that it shows once more."""
        return replace(self, conclusion=self.conclusion + Conclusion(again=again))


class Trial(Protocol):
    """One thing that is tried: how it came to be, what is new with it, what to ask."""

    @property
    def number(self) -> int: ...
    @property
    def birth(self) -> Birth | None: ...
    @property
    def root(self) -> int:
        """The seed that it descends from."""
        ...

    @property
    def subject(self) -> Subject:
        """The model that is tried, or a layer of which is."""
        ...

    @property
    def changed(self) -> tuple[str, ...]:
        """Layers that its parent does not have."""
        ...

    @property
    def new(self) -> str:
        """What is new, for the chain of mutations that a report shows."""
        ...

    @property
    def cost(self) -> int:
        """Requests to every target until it was there, and its own."""
        ...

    @property
    def repeatable(self) -> bool:
        """Whether it can be made again from its birth; only then may it breed."""
        ...

    @property
    def counts(self) -> bool:
        """Whether its D_MAD counts: it is a model on the inputs of its seed (LEMON, 4.2)."""
        ...

    def request(self, keep: bool) -> Request[Any]: ...

    def answered(self, runs: Mapping[str, Run], lab: Lab) -> Answered: ...


@dataclass(frozen=True)
class Initial:
    """A seed itself: what it shows is not the mutants' merit."""

    number: int
    seed: Seed
    birth: None = None
    changed: tuple[str, ...] = ()
    cost: int = 1
    repeatable: bool = True
    counts: bool = True

    @property
    def root(self) -> int:
        return self.number

    @property
    def subject(self) -> Subject:
        return self.seed.subject

    @property
    def new(self) -> str:
        return self.seed.name

    def request(self, keep: bool) -> RunModel:
        return ModelRun(self.seed, self.subject.model).request(keep)

    def answered(self, runs: Mapping[str, Run], lab: Lab) -> Answered:
        judged = judge(runs, (), self.seed.case.truth, lab.settings)
        model, investigator = self.subject.model, lab.investigator
        concluded = investigator.look(self.seed, model, judged)
        accused = investigator.accused(concluded)
        concluded += contradictions(investigator.bench, self.seed, judged, accused)
        return _answered(judged, concluded, model)


@dataclass(frozen=True)
class Mutant:
    """A new model, and which of its layers its parent does not have."""

    birth: Birth
    root: int
    subject: Subject
    changed: tuple[str, ...]
    seed: Seed  # with inputs of its own, where they were searched
    searched: bool = False  # a search is not repeated from a seed of chance alone
    cost: int = 1
    counts: bool = True  # False: on inputs that are not its seed's

    @property
    def number(self) -> int:
        return self.birth.number

    @property
    def new(self) -> str:
        return " ".join(self.subject.model.layer(name).kind for name in self.changed)

    @property
    def repeatable(self) -> bool:
        return not self.searched

    def request(self, keep: bool) -> RunModel:
        rows = affordable_rows(self.subject, self.changed, self.seed.case.data.count)
        return ModelRun(self.seed, self.subject.model, self.changed, rows).request(keep)

    def answered(self, runs: Mapping[str, Run], lab: Lab) -> Answered:
        """Judged, and shown to the oracles; where targets part, a look is left for later."""
        model, judged = self.subject.model, self._judged(runs, lab)
        recognised = lab.investigator.recognised(model, judged)
        concluded = Conclusion(again=recognised.again)
        for oracle in lab.oracles:
            concluded += oracle.look(self.seed, model, judged)
        odd = None if recognised.all_of_it else judged
        return replace(_answered(judged, concluded, model), odd=odd)

    def looked_into(self, runs: Mapping[str, Run], lab: Lab) -> Answered:
        """Why targets part, as far as they do."""
        judged = self._judged(runs, lab)
        concluded = lab.investigator.look(self.seed, self.subject.model, judged)
        return _answered(judged, concluded, self.subject.model)

    def _judged(self, runs: Mapping[str, Run], lab: Lab) -> Judged:
        return judge(runs, self.changed, self.seed.case.truth, lab.settings)


def _answered(judged: Judged, conclusion: Conclusion, model: Model) -> Answered:
    return Answered(
        judged.runs,
        judged.failed,
        judged.valid,
        conclusion,
        judged.acc,
        judged.mad(),
        model.identity,
    )


def row_of(trial: Trial, answered: Answered) -> Row:
    """What the store keeps of a trial; whether it joined, and when, is not known yet."""
    birth = trial.birth
    failed = next(iter(answered.failed.values()), None)
    return Row(
        trial.number,
        birth.parent if birth else None,
        trial.root,
        birth.rule if birth else None,
        birth.seed if birth else None,
        "invalid" if not answered.valid else "some" if answered.failed else "ok",
        answered.acc,
        False,
        len(trial.subject.model.layers),
        sum(inside(run) for run in answered.runs.values()),
        0.0,
        f"{failed.target}: {failed.message[:_MOST_LETTERS]}" if failed else "",
        trial.new,
        answered.network,
        bool(answered.conclusion.findings or answered.conclusion.again),
    )
