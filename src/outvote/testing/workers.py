"""The workers of a test session: started by the first test that needs them, used by all."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from outvote.bench.reader import helpers, reader, start_targets
from outvote.commands.check.job import Job
from outvote.mutate.tools import Tools, tools_for
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.watch import silent
from outvote.targets.environments.provide import provide
from outvote.testing.session import Setting


class Workers:
    """One pool; another one for custom layers, which workers read when they start."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._pools: dict[tuple[Path | None, bool], LocalPool] = {}
        self._tools: dict[str, Tools] = {}

    def close(self) -> None:
        """End every worker."""
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()
        self._tools.clear()

    def pool_for(self, job: Job) -> tuple[Pool, Job]:
        """The pool, with the targets of the job in it, and the job with these."""
        targets = provide(job.targets, job.links)
        everyone = (*targets, *helpers(targets))
        key = (job.custom, job.allow_code)
        if key not in self._pools:
            self._pools[key] = LocalPool(
                everyone,
                limits=replace(job.limits, memory_bytes=self._memory(len(everyone))),
                custom=job.custom,
                allow_code=job.allow_code,
                jobs=max(1, (os.cpu_count() or 1) // self._setting.processes),
            )
        pool = self._pools[key]
        for target in everyone:
            if pool.targets.get(target.name) != target:
                pool.add(target)
        return pool, replace(job, targets=targets)

    def tools(self, job: Job) -> Tools:
        """What drawn layers are made with: the worker that reads models."""
        pool, job = self.pool_for(job)
        name = reader(job.targets).name
        if name not in self._tools:
            start_targets(pool, [name], silent)
            self._tools[name] = tools_for(job.targets[0].dialect, pool, name)
        return self._tools[name]

    def _memory(self, workers: int) -> int | None:
        """The share of one worker in what the session may hold."""
        if self._setting.memory is None:
            return None
        return int(self._setting.memory * 2**30 / self._setting.processes / max(1, workers))
