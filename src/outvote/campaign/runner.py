"""Asks all targets, and tells a death that repeats from one that does not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Protocol

from outvote.campaign.seeds import Seed
from outvote.core.model import Model
from outvote.core.protocol import Ran, Request, RunModel
from outvote.core.states import State
from outvote.core.target import Outcome, Run
from outvote.mutate.subject import Subject
from outvote.run.places import Places
from outvote.run.pool import Ask, Pool, asked_some
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
    _deadly: set[tuple[str, str, str]] = field(default_factory=set)  # target, kind of layer, how
    _counting: Lock = field(default_factory=Lock)
    _turns: dict[str, Places] = field(default_factory=dict)  # by target

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
        asked = whom or [self.names] * len(requests)
        found = asked_some(self.pool, requests, asked, self._settled, self._turn)
        with self._counting:
            for runs in found:
                for name, run in runs.items():
                    self.busy[name] = self.busy.get(name, 0.0) + inside(run)
        return found

    def _turn(self, name: str) -> AbstractContextManager[None]:
        """Of those who ask side by side, each all its questions: who came first, reaches first."""
        with self._counting:
            return self._turns.setdefault(name, Places()).one()

    def _settled(self, ask: Ask, request: Request[Any]) -> Run[Any]:
        """The answer; of a death, what comes of it in fresh workers, unless that is known.

        Whoever dies in a kind of layer, in the same way as one did that died of it again, is not
        asked again: each time takes a worker.
        """
        first = ask(request)
        if not first.outcome.is_death:
            return first
        cause = _cause_of_death(request, first)
        if cause in self._deadly:
            return first
        run = settled(ask, request, first)
        if not run.outcome.is_death:
            with self._counting:
                self.flaky += 1
        elif cause is not None:
            self._deadly.add(cause)
        return run

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


def _cause_of_death(request: Request[Any], run: Run[Any]) -> tuple[str, str, str] | None:
    """Who died in which kind of layer, and how; None: nobody knows, or it was killed."""
    if run.outcome is not Outcome.CRASH or not isinstance(request, RunModel):
        return None
    kinds = {layer.name: layer.kind for layer in request.model.layers}
    kind = kinds.get(run.layer or "")
    return None if kind is None else (run.target, kind, run.message)


def inside(run: Run[Any]) -> float:
    """Seconds that the target itself took."""
    return run.inside if run.ok else run.seconds


def affordable_rows(subject: Subject, watch: Sequence[str], count: int) -> int:
    """On how many inputs hidden layers are compared: as many as fit into what may be sent."""
    sizes = [spec.size or 1 for name in watch for spec in subject.specs[name]]
    return max(1, min(count, _NUMBERS // max(1, sum(sizes))))
