"""Everything that a crew works with: started targets, seeds that were read and run, tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from outvote.bench.reader import arrivals, reader, require_started
from outvote.campaign.investigate import Investigator
from outvote.campaign.job import FuzzJob
from outvote.campaign.oracles import created
from outvote.campaign.performance.stopwatch import Stopwatch
from outvote.campaign.runner import ModelRun, Runner
from outvote.campaign.seeds import Seed, read_seeds, with_truth
from outvote.campaign.trial import Lab
from outvote.core.errors import UsageError
from outvote.core.events import Event
from outvote.core.protocol import Hello
from outvote.core.result import target_head
from outvote.core.target import Run, Target
from outvote.mutate.tools import Tools, tools_for
from outvote.run.pool import Pool

_NOBODY = "no target can run this seed"


def unheard(event: Event) -> None:
    """Nobody wants to hear who came up."""


@dataclass(frozen=True)
class Equipment:
    """What a crew has at hand, in an open pool."""

    job: FuzzJob
    pool: Pool
    targets: Mapping[str, Target]
    hellos: Mapping[str, Run[Hello]]
    runner: Runner
    lab: Lab
    tools: Tools
    seeds: Mapping[int, Seed]  # each with a truth to measure D_MAD by
    first_runs: Mapping[int, Mapping[str, Run]]  # of the seeds, in this sitting
    gone: Mapping[str, str]  # seeds that nobody can run, and why

    @property
    def heads(self) -> dict[str, Any]:
        """What each target is, and said at the start."""
        return {name: target_head(t, self.hellos[name]) for name, t in self.targets.items()}


def equipped(job: FuzzJob, pool: Pool, tell: Callable[[Event], None] = unheard) -> Equipment:
    """Start the targets, read the seeds and run them."""
    names = [target.name for target in job.targets]
    hellos = pool.start(names)
    for event in arrivals(hellos):
        tell(event)
    require_started(hellos)
    targets = {target.name: target for target in job.targets}
    runner = Runner(pool, names, keep=job.keep_outputs)
    investigator = Investigator(runner, job.targets, job.settings, job.minimise)
    stopwatch = Stopwatch(runner, pool.targets)
    lab = Lab(investigator, created(runner, pool.targets, job.oracle), stopwatch, job.settings)
    read = read_seeds(pool, job)
    tools = tools_for(job.dialect, pool, reader(job.targets).name)
    first = [ModelRun(seed, seed.case.model) for seed in read]
    runs = runner.run(first, lines=job.line_coverage)
    first_runs = {n + 1: found for n, found in enumerate(runs)}
    found = {n + 1: _settled(*both) for n, both in enumerate(zip(read, runs, strict=True))}
    seeds = {number: seed for number, seed in found.items() if seed is not None}
    gone = {read[number - 1].name: _NOBODY for number, seed in found.items() if seed is None}
    if not seeds:
        raise UsageError(f"no target can run any of the seeds, such as {next(iter(gone))}")
    return Equipment(job, pool, targets, hellos, runner, lab, tools, seeds, first_runs, gone)


def _settled(seed: Seed, runs: Mapping[str, Run]) -> Seed | None:
    """The seed with a truth: made of the targets' answers where the data has none.

    None: an example with a known answer, one of many, that all targets say they lack.
    """
    outputs = [run.reply.outputs for run in runs.values() if run.ok]
    if not outputs and seed.answers is not None:
        return None
    if not outputs:
        told = "; ".join(f"{n}: {' '.join(r.message.split())[:200]}" for n, r in runs.items())
        raise UsageError(f"no target can run the seed {seed.name!r}: {told}")
    return with_truth(seed, outputs)
