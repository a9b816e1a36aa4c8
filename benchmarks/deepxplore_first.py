"""DeepXplore's tables 9, 10 and 11: seconds to the first difference; deepxplore.py prints them.

ImageNet's and Drebin's rows are missing: their models are too large, or were not published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from outvote.core.explore_protocol import SearchSeeds
from outvote.explore.expedition import ask
from outvote.explore.explore import open_in, prepare
from outvote.explore.job import ExploreJob
from outvote.explore.legal import read_features
from outvote.run.pool import Pool

RUNS = 10  # as in the paper
ITERATIONS = 60
SEEDS = {"MNIST": 8, "PDF": 8, "Driving": 2}  # of one run; they climb at once


@dataclass(frozen=True)
class Sweep:
    """One table: an option, its values, and the paper's seconds for each."""

    number: int
    option: str
    values: Sequence[float]
    paper: dict[str, Sequence[float]]


SWEEPS = (
    Sweep(
        9,
        "step",
        (0.01, 0.1, 1, 10, 100),
        {
            "MNIST": (0.19, 0.26, 0.65, 0.62, 0.65),
            "PDF": (0.17, 0.16, 0.21, 0.21, 0.22),
            "Driving": (0.51, 0.5, 0.53, 0.55, 0.54),
        },
    ),
    Sweep(
        10,
        "lambda1",
        (0.5, 1, 2, 3),
        {
            "MNIST": (0.28, 0.25, 0.2, 0.17),
            "PDF": (0.13, 0.12, 0.05, 0.09),
            "Driving": (0.62, 0.59, 0.57, 0.58),
        },
    ),
    Sweep(
        11,
        "lambda2",
        (0.5, 1, 2, 3),
        {
            "MNIST": (0.19, 0.22, 0.23, 0.26),
            "PDF": (0.09, 0.15, 0.21, 0.25),
            "Driving": (0.56, 0.61, 0.67, 0.74),
        },
    ),
)


def first_difference(
    pool: Pool,
    names: Iterable[str],
    job_for: Callable[..., ExploreJob],
    table: Callable[..., None],
) -> None:
    """Print the three tables; a cell is the mean of the runs that found a difference."""
    rows: dict[int, list[list[Any]]] = {sweep.number: [] for sweep in SWEEPS}
    for name in names:
        seeds = SEEDS[name]
        job = job_for(name, RUNS * seeds, iterations=ITERATIONS, batch_size=seeds)
        trip = open_in(pool, job)
        digests = [pool.blobs.put(array) for array in trip.data.inputs]
        features = read_features(job.features) if job.features else None
        for sweep in SWEEPS:
            cells = []
            for value in sweep.values:
                wish: dict[str, Any] = {sweep.option: value}
                prepare(replace(trip, job=replace(job, **wish)), features)
                cells.append(_cell(pool, job, digests, seeds))
            rows[sweep.number].append([f"{name}, here", *cells])
            rows[sweep.number].append([f"{name}, paper", *(f"{t:.2f}" for t in sweep.paper[name])])
    for sweep in SWEEPS:
        print(f"## Table {sweep.number}: seconds to the first difference over {sweep.option}\n")
        print(
            f"Mean of {RUNS} runs of up to {ITERATIONS} iterations; in brackets the iterations.\n"
        )
        table(
            ("data", *(f"{sweep.option} {value:g}" for value in sweep.values)), rows[sweep.number]
        )


def _cell(pool: Pool, job: ExploreJob, digests: list[str], seeds: int) -> str:
    """Mean seconds, and mean iterations (which do not depend on what else the machine does)."""
    times, iterations = [], []
    for number in range(RUNS):
        start = number * seeds
        request = SearchSeeds(
            seeds=tuple(digests),
            start=start,
            stop=start + seeds,
            cycle=0,
            done=start,
            steps=seeds,
        )
        found = ask(pool, job.target, request).reply
        if found.first is not None:
            times.append(found.first)
            iterations.append(int(found.iterations.min()))
    if not times:
        return "none found"
    missed = f", {len(times)} of {RUNS} runs" if len(times) < RUNS else ""
    return f"{np.mean(times):.2f} ({np.mean(iterations):.1f}{missed})"
