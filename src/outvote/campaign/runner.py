"""Runs models on all targets, and tells a death that repeats from one that does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from outvote.campaign.seeds import Seed
from outvote.core.model import Model
from outvote.core.outputs import hidden_of
from outvote.core.states import State
from outvote.core.target import Outcome, Run
from outvote.mutate.subject import Subject
from outvote.run.pool import Pool, Request

_DEATHS = (Outcome.CRASH, Outcome.HANG, Outcome.MEMORY, Outcome.GARBAGE)
_KILLS = 3  # a worker killed so often on one model is killed by the model
_NUMBERS = 1 << 16  # of hidden layers, that a target sends for one model


@dataclass(frozen=True)
class Trial:
    """A model to run, and the hidden layers to look at."""

    seed: Seed
    model: Model
    watch: Sequence[str] = ()
    rows: int = 1  # of what hidden layers give, that are sent
    instead: Request | None = None  # asked instead of running the model


@dataclass
class Runner:
    """Asks the workers. `flaky` counts deaths that did not repeat in a fresh worker."""

    pool: Pool
    names: Sequence[str]
    keep: bool = True
    flaky: int = 0
    recycled: int = 0
    busy: dict[str, float] = field(default_factory=dict)  # seconds inside each target

    def run(self, trials: Sequence[Trial]) -> list[dict[str, Run]]:
        """Every trial on every target; deaths are tried once more."""
        requests = [self._request(trial) for trial in trials]
        found = self.pool.ask_each(self.names, requests)
        for request, runs in zip(requests, found, strict=True):
            for name, run in runs.items():
                if run.outcome in _DEATHS:
                    runs[name] = self._once_more(name, request, run)
                self.busy[name] = self.busy.get(name, 0.0) + inside(runs[name])
        return found

    def alone(self, trial: Trial) -> dict[str, Run]:
        """One trial, computed as a whole: nothing kept from earlier models is used."""
        return self.pool.ask_all(self.names, self._request(trial, keep=False))

    def hidden(self, name: str, trial: Trial) -> dict[str, list[State]] | None:
        """What hidden layers gave on one target, for all inputs; None if it fails now."""
        request = self._request(replace(trial, rows=trial.seed.case.data.count), keep=True)
        run = self.pool.ask(name, request)
        return hidden_of(run).states if run.ok else None

    def recycle(self, limit: int) -> None:
        """Replace workers that have grown beyond a limit."""
        for name in self.names:
            if self.pool.memory(name) > limit:
                self.pool.recycle(name)
                self.recycled += 1

    def _request(self, trial: Trial, keep: bool | None = None) -> Request:
        if trial.instead is not None:
            return trial.instead
        keep = self.keep if keep is None else keep
        arguments = {
            "model": trial.model.to_json(),
            "inputs": list(trial.seed.inputs),
            "batch": trial.seed.case.data.count,
            "keep": keep,
            "watch": list(trial.watch) if keep else [],
            "rows": trial.rows,
        }
        return Request("run", arguments, steps=len(trial.model.layers))

    def _once_more(self, name: str, request: Request, first: Run) -> Run:
        """In a fresh worker; a kill from outside may hit that one too, so it gets more chances."""
        run = first
        for _ in range(_KILLS if first.outcome is Outcome.MEMORY else 1):
            run = self.pool.ask(name, request)
            if run.outcome not in _DEATHS:
                self.flaky += 1
                break
        return run


def inside(run: Run) -> float:
    """Seconds that the target itself took."""
    return float(run.reply.get("seconds", 0.0)) if run.ok else run.seconds


def affordable_rows(subject: Subject, watch: Sequence[str], count: int) -> int:
    """On how many inputs hidden layers are compared: as many as fit into what may be sent."""
    sizes = [spec.size or 1 for name in watch for spec in subject.specs[name]]
    return max(1, min(count, _NUMBERS // max(1, sum(sizes))))
