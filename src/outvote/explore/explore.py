"""`outvote explore`: the search, batch after batch in one worker, then the baselines.

The straight line: read the models → fit the seeds → search → measure coverage beside random and
adversarial inputs → result.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from outvote.bench.reader import start_targets
from outvote.core.answers import Oracle
from outvote.core.arrays import Array
from outvote.core.case import fit, load_data
from outvote.core.dialect import inspect
from outvote.core.errors import UsageError
from outvote.core.explore_protocol import (
    ExplorerOpened,
    KeepFinds,
    PrepareSearch,
    SearchSeeds,
    SeedsSearched,
)
from outvote.core.target import Run, Target
from outvote.explore.baselines import adversarial_inputs, measure, random_inputs
from outvote.explore.expedition import Expedition
from outvote.explore.job import CONSTRAINTS, Differences, Explored, ExploreJob
from outvote.explore.legal import Features, read_features, rules_for
from outvote.explore.retrained import retrain
from outvote.explore.second_target import confirmed, open_confirmer, require_another
from outvote.explore.subjects import kind_of_answers, read_subjects, require_comparable
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.scripts import script_of
from outvote.run.watch import Watch, silent


def run_explore(job: ExploreJob, watch: Watch = silent) -> Explored:
    """Do the job with a worker of its own."""
    require_two(job)
    require_sense(job)
    for path in job.models:
        inspect(path, None)
    targets = _targets(job)
    with LocalPool(
        targets, limits=job.limits, custom=job.custom, allow_code=job.allow_code
    ) as pool:
        return explore_in(pool, job, watch)


def explore_in(pool: Pool, job: ExploreJob, watch: Watch = silent) -> Explored:
    """Do the job in a pool that has its target, started or not."""
    require_two(job)
    require_sense(job)
    explored = Explored(job)
    began = time.monotonic()
    try:
        _stages(Expedition(pool, job, explored), watch)
    except KeyboardInterrupt:
        if not explored.tried:
            raise
        explored.interrupted = True
    except UsageError as error:
        if explored.found is None:
            raise
        explored.warnings.append(f"the search ended early, what it had found is kept: {error}")
    explored.seconds = time.monotonic() - began
    return explored


def require_two(job: ExploreJob) -> None:
    """One model alone cannot differ from anything."""
    if len(job.models) < 2:
        raise UsageError(
            f"models are held against each other; received only {job.models[0]}. Name two or "
            "more, or one model with --targets A,B to hold implementations against each other"
        )


def require_sense(job: ExploreJob) -> None:
    """What is wrong without any model being read."""
    if job.constraint not in CONSTRAINTS and not Path(job.constraint).is_file():
        raise UsageError(
            f"--constraint {job.constraint!r} is neither one of {', '.join(CONSTRAINTS)} nor "
            "a file; name one of them or a FILE.py"
        )
    if job.groups and job.features is None:
        raise UsageError("--groups names groups of a features file; add --features FILE.csv")
    require_another(job)


def require_neurons(explored: Explored, opened: ExplorerOpened) -> None:
    """Keep which layers have neurons; a model without any cannot be covered."""
    explored.layers = opened.layers
    widths = [sum(layer["neurons"] for layer in layers) for layers in explored.layers]
    for subject, width in zip(explored.subjects, widths, strict=True):
        if not width:
            raise UsageError(
                f"{subject.path.name} has no layer whose neurons count; name fewer in --skip"
            )


def open_in(pool: Pool, job: ExploreJob, watch: Watch = silent) -> Expedition:
    """Read the models and the seeds and send them to the worker, ready to search."""
    trip = Expedition(pool, job, Explored(job))
    _open(trip, watch)
    return trip


def _open(trip: Expedition, watch: Watch) -> None:
    pool, job, explored = trip.pool, trip.job, trip.explored
    names = _names(job)
    arrays = load_data(job.data) if isinstance(job.data, Path) else dict(job.data)
    features = read_features(job.features) if job.features else None
    explored.feature_names = features.names if features else _names_in(arrays)
    options = dict(zip(names, ("--target", "--confirm"), strict=False))
    hellos = start_targets(pool, names, watch, options)
    explored.hello = hellos[job.target.name]
    with watch("Reading the models", pool, names):
        explored.subjects = read_subjects(pool, job.models)
        require_comparable(explored.subjects)
        explored.kind = kind_of_answers(job, explored.subjects)
        if job.count is not None:
            arrays = {k: a[: job.count] if a.ndim else a for k, a in arrays.items()}
        source = str(job.data) if isinstance(job.data, Path) else "arrays"
        explored.data = fit(arrays, explored.subjects[0].model, source, allow_nan=False)
        require_neurons(explored, trip.open(job.target))
        open_confirmer(trip)
    prepare(trip, features)


def _stages(trip: Expedition, watch: Watch) -> None:
    pool, job, explored = trip.pool, trip.job, trip.explored
    names = _names(job)
    _open(trip, watch)
    count = trip.data.count
    with watch(f"Searching from {count} seed{'s' * (count != 1)}", pool, names):
        _search(trip)
    if job.baselines and (explored.found is not None or explored.already):
        with watch("Comparing with random and adversarial inputs", pool, names):
            _compare(trip)
    if job.retraining is not None:
        retrain(trip, job.retraining, watch)


def prepare(trip: Expedition, features: Features | None) -> None:
    """Tell the worker what may change, when answers differ, and how to climb."""
    job, explored = trip.job, trip.explored
    l1, l2, _ = job.hyperparameters
    own = (
        None if job.constraint in CONSTRAINTS else script_of(Path(job.constraint), trip.pool.blobs)
    )
    request = PrepareSearch(
        constraint=job.constraint if own is None else "",
        script=own,
        rules=rules_for(job, trip.data.inputs, features),
        oracle=Oracle(explored.kind, job.tolerance, tuple(job.edges)),
        lambda1=l1,
        lambda2=l2,
        iterations=job.iterations,
        seed=job.seed,
        total=trip.data.count,
    )
    trip.ask(request)


def _search(trip: Expedition) -> None:
    """Once over all seeds; with --until-coverage round after round, as long as one helps."""
    job, explored = trip.job, trip.explored
    while True:
        before = explored.coverage
        _round(trip)
        explored.cycles += 1
        wanted = job.until_coverage
        if wanted is None or explored.coverage >= wanted or explored.coverage <= before:
            return


def _round(trip: Expedition) -> None:
    job, explored = trip.job, trip.explored
    inputs, count = trip.data.inputs, trip.data.count
    digests = tuple(trip.pool.blobs.put(array) for array in inputs)
    for start in range(0, count, job.batch_size):
        stop = min(start + job.batch_size, count)
        request = SearchSeeds(
            seeds=digests,
            start=start,
            stop=stop,
            cycle=explored.cycles,
            done=start,
            steps=stop - start,
        )
        _note(trip, trip.ask(request))
        if job.until_coverage is not None and explored.coverage >= job.until_coverage:
            return


def _note(trip: Expedition, run: Run[SeedsSearched]) -> None:
    """Keep what one batch of seeds gave, and what the second target confirms of it."""
    explored, found = trip.explored, run.reply
    new = Differences(
        found.index,
        list(found.inputs),
        list(found.answers),
        list(found.before),
        found.iterations,
        found.chosen,
    )
    rows = confirmed(trip, new)
    kept = trip.ask(KeepFinds(rows=tuple(rows)))
    if rows and explored.first_seconds is None:
        explored.first_seconds = explored.search_seconds + (found.first or 0.0)
    explored.search_seconds += run.seconds + kept.seconds
    explored.search_cpu_seconds += found.cpu + kept.reply.cpu
    explored.tried += found.tried
    explored.unmoved += found.unmoved
    if not explored.cycles:
        explored.flat += found.flat
        explored.already += [int(i) for i in found.already]
    explored.best = list(kept.reply.best)
    if rows:
        explored.add(new.rows(np.array(rows)))


def _compare(trip: Expedition) -> None:
    """Coverage of as many random and adversarial inputs as there are tests (figure 9)."""
    explored = trip.explored
    tests = [array[explored.already] for array in trip.data.inputs]
    if explored.found is not None:
        pairs = zip(tests, explored.found.inputs, strict=True)
        tests = [np.concatenate(pair) for pair in pairs]
    count = len(tests[0])
    rivals = {
        "explore": tests,
        "random": random_inputs(trip, count),
        "fgsm": adversarial_inputs(trip, count),
    }
    for name, inputs in rivals.items():
        explored.covered[name], explored.split_by[name] = measure(trip, inputs)


def _targets(job: ExploreJob) -> list[Target]:
    """The one that searches, and the one that confirms."""
    return [target for target in (job.target, job.confirm) if target is not None]


def _names(job: ExploreJob) -> list[str]:
    return [target.name for target in _targets(job)]


def _names_in(arrays: dict[str, Array]) -> tuple[str, ...]:
    """Names of features that come with the data."""
    names = arrays.get("feature_names")
    return tuple(str(name) for name in names) if names is not None and names.ndim == 1 else ()
