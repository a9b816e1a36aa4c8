"""`outvote fuzz`: opens the store and the pool, runs the campaign, writes its reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from outvote.api import prepare_folder
from outvote.campaign.campaign import Campaign, Watch
from outvote.campaign.job import Budget, FuzzJob
from outvote.campaign.rules import chosen_rules, rules_of
from outvote.campaign.seeds import check_files
from outvote.campaign.store import Store
from outvote.campaign.summary import fuzz_result
from outvote.core.errors import UsageError
from outvote.core.target import Target
from outvote.environments.provide import provide
from outvote.report import write_all
from outvote.run.pool import Pool
from outvote.search.registry import strategies
from outvote.targets import find_target

Ready = Callable[[Iterable[Target]], tuple[Target, ...]]


def start(
    job: FuzzJob,
    out: Path,
    watch: Watch = lambda progress: None,
    ready: Ready = provide,
) -> dict[str, Any]:
    """A new campaign in an empty folder. `ready` makes targets with versions ready to start."""
    check_files(job.seeds)
    chosen_rules(job.rules)
    if job.strategy not in strategies():
        raise UsageError(
            f"there is no strategy {job.strategy!r}; choose from {', '.join(strategies())}"
        )
    rules_of(job)
    if len(job.targets) < 2:
        raise UsageError(
            f"a comparison needs two targets; received {', '.join(t.name for t in job.targets)}"
        )
    prepare_folder(out)
    with closing(Store(out, create=True)) as store:
        store.note("job", job.stored())
        store.note("created", datetime.now(UTC).isoformat(timespec="seconds"))
        return _run(job, store, out, watch, ready)


def resume(
    out: Path,
    targets: Mapping[str, Target],
    watch: Watch = lambda progress: None,
    budget: Budget | None = None,
    jobs: int | None = None,
    ready: Ready = provide,
) -> dict[str, Any]:
    """Go on with a stored campaign, with its own budget or a new one."""
    with closing(Store(out, create=False)) as store:
        stored = store.fact("job")
        try:
            found = {name: find_target(name, targets) for name in stored["targets"]}
        except UsageError as error:
            raise UsageError(
                f"the campaign in {out} cannot go on here: {error}; "
                "give the outvote.toml that defines its targets with --config"
            ) from error
        job = FuzzJob.restored(stored, found).but(jobs=jobs)
        if budget is not None:
            job = job.but(budget=budget)
            store.note("job", job.stored())
        check_files(job.seeds)
        return _run(job, store, out, watch, ready)


def report(out: Path) -> dict[str, Any]:
    """Write the reports of a stored campaign again."""
    with closing(Store(out, create=False)) as store:
        if store.fact("state") is None:
            raise UsageError(f"the campaign in {out} was stopped before its seeds had run")
        result = fuzz_result(store)
    write_all(result, out)
    return result


def _run(job: FuzzJob, store: Store, out: Path, watch: Watch, ready: Ready) -> dict[str, Any]:
    job = job.but(targets=ready(job.targets))
    with Pool(job.targets, limits=job.limits, jobs=job.jobs) as pool:
        Campaign(job, pool, store, out).run(watch)
    result = fuzz_result(store)
    write_all(result, out)
    return result
