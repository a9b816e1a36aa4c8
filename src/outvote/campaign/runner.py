"""Asks all targets, and tells a death that repeats from one that does not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from outvote.campaign.seeds import Seed
from outvote.core.model import Model
from outvote.core.protocol import Ran, Request, RunModel
from outvote.core.states import State
from outvote.core.target import Run
from outvote.mutate.subject import Subject
from outvote.run.pool import Pool, asked_some, asker
from outvote.run.settle import ask_all_settled, ask_settled, settled

_NUMBERS = 1 << 16  # of hidden layers, that a target sends for one model


class Question(Protocol):
    """What every target is asked; `keep`: with what workers keep from earlier models."""

    def request(self, keep: bool) -> Request[Any]: ...


@dataclass(frozen=True)
class ModelRun:
    """A model to run on the inputs of a seed, and the hidden layers to look at."""

    seed: Seed
    model: Model
    watch: Sequence[str] = ()
    rows: int = 1  # of what hidden layers give, that are sent

    def request(self, keep: bool) -> RunModel:
        return RunModel(
            model=self.model,
            inputs=self.seed.inputs,
            batch=self.seed.case.data.count,
            keep=keep,
            watch=tuple(self.watch) if keep else (),
            rows=self.rows,
            steps=len(self.model.layers),
        )


@dataclass
class Runner:
    """Asks the workers. `flaky` counts deaths that did not repeat in a fresh worker."""

    pool: Pool
    names: Sequence[str]
    keep: bool = True
    flaky: int = 0
    recycled: int = 0
    busy: dict[str, float] = field(default_factory=dict)  # seconds inside each target

    def run(
        self,
        questions: Sequence[Question],
        whom: Sequence[Collection[str]] | None = None,
        lines: bool = False,
    ) -> list[dict[str, Run[Any]]]:
        """Every question to every target, or to those named for it; deaths are tried once more.

        `lines`: targets also tell which lines of their own Python models run for the first time.
        """
        requests = [question.request(self.keep) for question in questions]
        if lines:
            requests = [
                replace(request, lines=True) if isinstance(request, RunModel) else request
                for request in requests
            ]
        found = asked_some(self.pool, requests, whom or [self.names] * len(requests))
        for request, runs in zip(requests, found, strict=True):
            for name, run in runs.items():
                runs[name] = settled(asker(self.pool, name), request, run)
                self.flaky += run.outcome.is_death and not runs[name].outcome.is_death
                self.busy[name] = self.busy.get(name, 0.0) + inside(runs[name])
        return found

    def alone(self, question: ModelRun) -> dict[str, Run[Ran]]:
        """One model, computed as a whole: nothing kept from earlier models is used."""
        return ask_all_settled(self.pool, self.names, question.request(keep=False))

    def hidden(self, name: str, question: ModelRun) -> Mapping[str, Sequence[State]] | None:
        """What hidden layers gave on one target, for all inputs; None if it fails now."""
        everything = replace(question, rows=question.seed.case.data.count)
        run = ask_settled(self.pool, name, everything.request(keep=True))
        return run.reply.watched if run.ok else None

    def recycle(self, limit: int) -> None:
        """Replace workers that have grown beyond a limit."""
        for name in self.names:
            if self.pool.memory(name) > limit:
                self.pool.recycle(name)
                self.recycled += 1


def inside(run: Run[Any]) -> float:
    """Seconds that the target itself took."""
    return run.inside if run.ok else run.seconds


def affordable_rows(subject: Subject, watch: Sequence[str], count: int) -> int:
    """On how many inputs hidden layers are compared: as many as fit into what may be sent."""
    sizes = [spec.size or 1 for name in watch for spec in subject.specs[name]]
    return max(1, min(count, _NUMBERS // max(1, sum(sizes))))
