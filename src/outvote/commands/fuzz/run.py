"""`outvote fuzz`: opens the store and the pool, runs the campaign, writes its reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

from outvote.bench.reader import helpers
from outvote.campaign.campaign import Campaign
from outvote.campaign.crews import Crews, OneCrew
from outvote.campaign.job import FuzzJob
from outvote.campaign.oracles import all_oracles
from outvote.campaign.progress import Onlooker, Progress
from outvote.campaign.rules import chosen_rules, rules_of
from outvote.campaign.seeds import check_files
from outvote.commands.fuzz.job import NewCampaign, Replay, Resumption
from outvote.commands.record import begin, broken_is_told, positions_noted, written
from outvote.commands.view import UNSEEN, View
from outvote.core.errors import UsageError
from outvote.core.events import Finished, Started
from outvote.core.result import moment
from outvote.core.target import Target
from outvote.findings.gate import STRICT, Gate
from outvote.fleet.address import Address
from outvote.fleet.fleet import crews_on
from outvote.report.folder import prepare_folder
from outvote.run.local import LocalPool
from outvote.search.registry import find_strategy
from outvote.store import facts
from outvote.store.folder import campaign_result, takes_campaign
from outvote.store.rows import Turn
from outvote.store.store import FILE, Store
from outvote.targets.choose import find_target, known_targets, require_trusted
from outvote.targets.environments.provide import provide

Ready = Callable[[Iterable[Target]], tuple[Target, ...]]
Work = Callable[[FuzzJob, Store, Path, Ready], AbstractContextManager[Crews]]
"""Opens the crews of a campaign, for as long as it runs."""


@contextmanager
def here(job: FuzzJob, store: Store, out: Path, ready: Ready) -> Iterator[Crews]:
    """One crew, in this process."""
    job = job.but(targets=ready(job.targets))
    everyone = (*job.targets, *helpers(job.targets))
    names = [target.name for target in job.targets]
    with (
        LocalPool(everyone, limits=job.limits, jobs=job.jobs) as pool,
        positions_noted(store, pool, names),
        closing(OneCrew(job, pool, out, store.tell)) as crews,
    ):
        yield crews


def on_cluster(
    address: Address, links: tuple[str, ...], say: Callable[[str], None] = UNSEEN.say
) -> Work:
    """Crews on a cluster, each of which makes its targets ready on its node."""

    @contextmanager
    def work(job: FuzzJob, store: Store, out: Path, ready: Ready) -> Iterator[Crews]:
        def note(crews: list[dict[str, Any]]) -> None:
            store.note(facts.CREWS, crews)

        with crews_on(address, job, links, out, note, say) as crews:
            yield crews

    return work


def run(job: NewCampaign | Resumption | Replay, view: View = UNSEEN) -> dict[str, Any]:
    """Begin a campaign, and that of its rival; go on with one, or go through one again."""

    def ready(targets: Iterable[Target]) -> tuple[Target, ...]:
        return provide(targets, job.links, view.announce)

    work = here if job.cluster is None else on_cluster(job.cluster, job.links, view.say)

    if isinstance(job, Replay):
        targets = targets_of(job.of, known_targets(job.config))
        require_trusted(targets.values(), job.config, f"the campaign in {job.of}")
        with view.progress() as watch:
            return replay(job.of, job.out, targets, watch, ready, job.gate, work)
    if isinstance(job, Resumption):
        targets = targets_of(job.out, known_targets(job.config))
        require_trusted(targets.values(), job.config, f"the campaign in {job.out}")
        with view.progress() as watch:
            return resume(job.out, targets, watch, job.changes, ready, job.gate, work)
    if job.rival is not None:
        require_rival(job.job, job.rival, job.out)
    with view.progress() as watch:
        result = start(job.job, job.out, watch, ready, job.gate, work)
    if job.rival is None or result["interrupted"]:
        return result
    with view.progress() as watch:
        return start_rival(job.job, job.rival, job.out, watch, ready, job.gate, work)


def start(
    job: FuzzJob,
    out: Path,
    watch: Onlooker = lambda progress: None,
    ready: Ready = provide,
    gate: Gate = STRICT,
    work: Work = here,
    record: Sequence[Turn] = (),
) -> dict[str, Any]:
    """A new campaign in an empty folder. `ready` makes targets with versions ready to start.

    `record`: what the strategy of another campaign was asked and told, to be gone through again.
    """
    check_files(job.seeds)
    chosen_rules(job.rules, job.dialect)
    rules_of(job)
    if job.oracle:
        all_oracles()[job.oracle].require(job.targets)
    elif len(job.targets) < 2:
        raise UsageError(
            f"a comparison needs two targets; received {', '.join(t.name for t in job.targets)}"
        )
    prepare_folder(out)
    with closing(Store(out, create=True)) as store:
        if not takes_campaign(store):
            raise UsageError(
                f"{out} holds a campaign already; go on with --resume, "
                "or choose another folder with --out"
            )
        store.note(facts.JOB, job.stored())
        store.note(facts.CREATED, moment())
        return _run(job, store, out, watch, ready, gate, work, record)


def require_rival(job: FuzzJob, rival: str, out: Path) -> None:
    """Say what is in the way of `start_rival` before the first campaign is run."""
    find_strategy(rival)
    if rival == job.strategy:
        raise UsageError(f"--compare {rival} is the strategy of the campaign; name another")
    if not (out / rival / FILE).exists():
        return
    with closing(Store(out / rival, create=False)) as store:
        if not takes_campaign(store):
            raise UsageError(f"{out / rival} holds a campaign already; choose another --out")


def start_rival(
    job: FuzzJob,
    rival: str,
    out: Path,
    watch: Onlooker = lambda progress: None,
    ready: Ready = provide,
    gate: Gate = STRICT,
    work: Work = here,
) -> dict[str, Any]:
    """The same budget with another strategy, in a folder inside; both go into one report."""
    start(job.but(strategy=rival), out / rival, watch, ready, gate, work)
    with closing(Store(out, create=False)) as store:
        store.note(facts.RIVALS, [rival])
        return written(campaign_result(store, out), out, gate)


def targets_of(out: Path, known: Mapping[str, Target]) -> dict[str, Target]:
    """The targets that the campaign in a folder names."""
    with closing(Store(out, create=False)) as store:
        names = _stored_job(store, out)["targets"]
    try:
        return {name: find_target(name, known) for name in names}
    except UsageError as error:
        raise UsageError(
            f"the campaign in {out} cannot go on here: {error}; "
            "give the outvote.toml that defines its targets with --config"
        ) from error


def _stored_job(store: Store, out: Path) -> dict[str, Any]:
    stored: dict[str, Any] | None = store.fact(facts.JOB)
    if stored is None:
        raise UsageError(f"{out} holds no campaign; start one there without --resume")
    return stored


def resume(
    out: Path,
    targets: Mapping[str, Target],
    watch: Onlooker = lambda progress: None,
    changes: Mapping[str, Any] | None = None,
    ready: Ready = provide,
    gate: Gate = STRICT,
    work: Work = here,
) -> dict[str, Any]:
    """Go on with a stored campaign; `changes` of its job (budget, limits, ...) are kept too."""
    with closing(Store(out, create=False)) as store:
        job = FuzzJob.restored(_stored_job(store, out), targets).but(**changes or {})
        store.note(facts.JOB, job.stored())
        check_files(job.seeds)
        return _run(job, store, out, watch, ready, gate, work)


def replay(
    of: Path,
    out: Path,
    targets: Mapping[str, Target],
    watch: Onlooker = lambda progress: None,
    ready: Ready = provide,
    gate: Gate = STRICT,
    work: Work = here,
) -> dict[str, Any]:
    """A stored campaign again in another folder, in the order in which it was told."""
    with closing(Store(of, create=False)) as store:
        job = FuzzJob.restored(_stored_job(store, of), targets)
        record = store.turns()
    if not record:
        raise UsageError(f"{of} holds no order of mutants to go through again")
    return start(job, out, watch, ready, gate, work, record)


def _run(
    job: FuzzJob,
    store: Store,
    out: Path,
    watch: Onlooker,
    ready: Ready,
    gate: Gate,
    work: Work,
    record: Sequence[Turn] = (),
) -> dict[str, Any]:
    store.note(facts.PAUSED, False)
    begin(store, Started("fuzz", gate.stored()))

    def follow(progress: Progress) -> None:
        store.tell(progress.told)
        watch(progress)

    with broken_is_told(store):
        with work(job, store, out, ready) as crews:
            Campaign(job, store, crews, record).run(follow)
        result = campaign_result(store, out)
        store.tell(Finished(result["verdict"], result["summary"]))
        return written(result, out, gate)
