"""DeepXplore's tables and figure 9 in our form, with its own trained models.

    python benchmarks/deepxplore.py DATA                  # all parts
    python benchmarks/deepxplore.py DATA --only speed

DATA is a folder with mnist_test.npz, pdf_contagio.npz, driving_64.npz and models/ (the LeNets and
PDF networks that the paper's authors published, and four steering networks). Beside each figure
stands the paper's. `benchmarks/deepxplore_uses.py` measures retraining and pollution.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.explore.asking import ask
from outvote.explore.baselines import measure, random_inputs
from outvote.explore.exploring import explore_in
from outvote.explore.job import Explored, ExploreJob
from outvote.explore.outcome import explore_result
from outvote.run.pool import Pool
from outvote.targets import BUILT_IN

ORIGINAL = 1.5  # seconds per seed of the authors' program, on an idle machine of this kind
THRESHOLDS = (0.0, 0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Domain:
    """Models that should agree, their data, and the paper's setting for them."""

    name: str
    models: tuple[Path, ...]
    x: Array
    settings: dict[str, Any]
    paper: str  # differences per model for 2,000 seeds (table 2)


def domains(data: Path) -> dict[str, Domain]:
    mnist = (np.load(data / "mnist_test.npz")["x"] / 255).astype(np.float32)[..., None]
    pdf = np.load(data / "pdf_contagio.npz")["x"]
    frames = np.load(data / "driving_64.npz")["x"].astype(np.float32)
    models = data / "models"
    pictures = {"constraint": "light", "lambda1": 1, "lambda2": 0.1, "step": 10}
    return {
        "MNIST": Domain(
            "MNIST",
            tuple(models / f"deepxplore_lenet{n}.keras" for n in (1, 4, 5)),
            mnist,
            pictures,
            "1073, 1968, 827",
        ),
        "PDF": Domain(
            "PDF",
            tuple(models / f"deepxplore_pdf_{n}x200.keras" for n in (2, 3, 4)),
            pdf,
            {"constraint": "integer", "lambda1": 2, "lambda2": 0.1, "step": 0.1},
            "1103, 789, 1253",
        ),
        "Driving": Domain(
            "Driving",
            tuple(
                models / f"driving_{name}.keras"
                for name in ("marcomarasca", "ncondo", "sgalkin", "eljefec")
            ),
            frames,
            {**pictures, "tolerance": 0.4, "batch_size": 16},
            "1720, 1866, 1930",
        ),
    }


class Bench:
    """One worker for all parts."""

    def __init__(self, pool: Pool, target: str, data: Path) -> None:
        self.pool = pool
        self.target = target
        self.domains = domains(data)

    def explore(self, domain: str, count: int, seed: int = 0, **more: Any) -> Explored:
        """The paper's setting on `count` random seeds."""
        chosen = self.domains[domain]
        total = len(chosen.x)
        rows = np.random.default_rng(seed).choice(total, min(count, total), replace=False)
        settings = {"baselines": False, "threshold": 0.0, "iterations": 20, **chosen.settings}
        job = ExploreJob(
            chosen.models,
            {"x": chosen.x[rows]},
            BUILT_IN[self.target],
            seed=seed,
            **{**settings, **more},
        )
        return explore_in(self.pool, job)


def found(explored: Explored) -> int:
    return explored.found.count if explored.found else 0


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    for line in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(str(cell) for cell in line) + " |")
    print(flush=True)


def speed(bench: Bench) -> None:
    print("## Speed: 100 MNIST seeds, light, λ1 1, λ2 0.1, step 10, 20 iterations, t 0\n")
    bench.explore("MNIST", 16)  # warm
    rows: list[list[Any]] = [
        ["the authors' program", "", f"{1 / ORIGINAL:.2f}", "", "68 to 70", "0.953"]
    ]
    for name, count, batch in (("one seed at a time", 20, 1), ("batched", 100, 128)):
        for _ in range(1 if batch == 1 else 3):
            explored = bench.explore("MNIST", count, batch_size=batch)
            cpu = explored.search_cpu_seconds
            rate = count / explored.search_seconds
            rows.append(
                [
                    name,
                    count,
                    f"{rate:.1f}",
                    f"{count / cpu:.1f}",
                    f"{100 * (found(explored) + len(explored.already)) / count:.0f}",
                    f"{explored.coverage:.3f}",
                ]
            )
    table(("mode", "seeds", "seeds/s", "seeds per CPU-s", "split of 100", "coverage"), rows)
    print(f"batched: {float(rows[-1][2]) * ORIGINAL:.0f} times the authors' seeds per second; load "
          f"average of the machine {os.getloadavg()[0]:.1f}\n")  # fmt: skip
    rounding(bench, explored)


def rounding(bench: Bench, explored: Explored) -> None:
    """How many pictures still split the models when they are saved with 8 bits."""
    assert explored.found is not None
    rounded = (np.rint(explored.found.inputs[0] * 255) / 255).astype(np.float32)
    answers = ask(bench.pool, explored.job.target, "ask", arrays=[rounded]).arrays
    still = int(explored.oracle.differ(answers).sum())
    print(
        f"after rounding to 8 bits {still} of {found(explored)} still split (authors': 40 of 41)\n"
    )


def scaling(bench: Bench) -> None:
    print("## How time grows with the seeds (MNIST, light)\n")
    rows = []
    for count in (100, 1000, 10_000):
        explored = bench.explore("MNIST", count)
        rate = f"{count / explored.search_seconds:.1f}"
        cpu = f"{count / explored.search_cpu_seconds:.1f}"
        rows.append([count, f"{explored.search_seconds:.1f}", rate, cpu, found(explored)])
    table(("seeds", "seconds", "seeds/s", "seeds per CPU-s", "differences"), rows)


def differences(bench: Bench) -> None:
    print("## Table 2: differences per model\n")
    rows = []
    for name, domain in bench.domains.items():
        explored = bench.explore(name, 2000)
        result = explore_result(explored)
        per_model = result["differences"]["per_model"]
        rows.append(
            [
                name,
                explored.tried,
                len(explored.already),
                found(explored),
                ", ".join(str(n) for n in per_model.values()),
                domain.paper,
                f"{explored.tried / explored.search_seconds:.1f}",
            ]
        )
    head = (
        "data",
        "seeds",
        "already different",
        "found",
        "per model",
        "paper, of 2,000",
        "seeds/s",
    )
    table(head, rows)


def diversity(bench: Bench) -> None:
    print("## Table 5: diversity (mean L1, values from 0 to 1), 500 MNIST seeds\n")
    rows = []
    for number in range(3):
        for weight in (0.0, 1.0):
            explored = bench.explore("MNIST", 500, number, lambda2=weight, threshold=0.25)
            result = explore_result(explored)
            l1 = result["differences"]["mean_l1"] or 0
            rows.append(
                [number + 1, weight, f"{l1:.1f}", f"{explored.coverage:.1%}", found(explored)]
            )
    table(("experiment", "λ2", "mean L1", "coverage at 0.25", "differences"), rows)


def ten_inputs(bench: Bench) -> None:
    print("## Table 6: neuron coverage of 10 random inputs, t = 0.75\n")
    paper = {"MNIST": "32.7, 33.1, 25.7", "PDF": "19.8, 17.3, 17.3", "Driving": "2.5, 3.1, 3.9"}
    rows = []
    for name in bench.domains:
        explored = bench.explore(name, 10, iterations=1)
        ten = random_inputs(explored, 10)
        coverage, _ = measure(bench.pool, explored.job, explored, ten)
        shares = ", ".join(f"{100 * float((b > 0.75).mean()):.1f}" for b in coverage.best)
        rows.append([name, shares, paper[name]])
    table(("data", "% per model", "paper's % per model"), rows)


def full_coverage(bench: Bench) -> None:
    print("## Table 8: until all neurons outside of dense layers are covered, t = 0\n")
    paper = {"MNIST": "6.6 to 7.6 s, 9 seeds", "Driving": "9.8 to 12.3 s, 12 seeds"}
    rows = []
    for name, told in paper.items():
        more: dict[str, Any] = {"until_coverage": 1.0, "batch_size": 4}
        explored = bench.explore(name, 16, skip=("dense", "activation"), **more)
        rows.append(
            [
                name,
                f"{explored.search_seconds:.1f}",
                explored.tried,
                f"{explored.coverage:.1%}",
                told,
            ]
        )
    table(("data", "seconds", "seeds", "covered", "paper"), rows)


def curves(bench: Bench) -> None:
    print("## Figure 9: coverage by as many inputs, over t\n")
    rows = []
    for name, count in (("MNIST", 100), ("PDF", 100), ("Driving", 64)):
        explored = bench.explore(name, count, baselines=True)
        for rival, coverage in explored.covered.items():
            total = sum(len(best) for best in coverage.best)
            shares = [sum(int((b > t).sum()) for b in coverage.best) / total for t in THRESHOLDS]
            split = explored.split_by[rival]
            rows.append([name, rival, coverage.tests, split, *(f"{s:.1%}" for s in shares)])
    head = ("data", "inputs by", "inputs", "that split", *(f"t = {t}" for t in THRESHOLDS))
    table(head, rows)


def first_difference(bench: Bench) -> None:
    print("## Tables 9 to 11: seconds to the first difference, mean of 5 runs of 32 seeds\n")
    sweeps: dict[str, Sequence[float]] = {
        "step": (0.01, 0.1, 1, 10, 100),
        "lambda1": (0.5, 1, 2, 3),
        "lambda2": (0.5, 1, 2, 3),
    }
    paper = {
        ("MNIST", "step"): "0.19 0.26 0.65 0.62 0.65",
        ("MNIST", "lambda1"): "0.28 0.25 0.2 0.17",
        ("MNIST", "lambda2"): "0.19 0.22 0.23 0.26",
        ("PDF", "step"): "0.17 0.16 0.21 0.21 0.22",
        ("PDF", "lambda1"): "0.13 0.12 0.05 0.09",
        ("PDF", "lambda2"): "0.09 0.15 0.21 0.25",
    }
    rows = []
    for (name, option), told in paper.items():
        for value in sweeps[option]:
            runs = [bench.explore(name, 32, n, **{option: value}) for n in range(5)]
            times = [run.first_seconds for run in runs if run.first_seconds is not None]
            mean = f"{np.mean(times):.2f}" if times else "none found"
            rows.append([name, option, value, mean, f"{len(times)} of 5", told])
    table(("data", "option", "value", "seconds", "runs with a find", "paper, in order"), rows)


PARTS: dict[str, Callable[[Bench], None]] = {
    "speed": speed,
    "scaling": scaling,
    "differences": differences,
    "coverage": curves,
    "diversity": diversity,
    "ten-inputs": ten_inputs,
    "full-coverage": full_coverage,
    "first-difference": first_difference,
}


@contextmanager
def started(target: str) -> Iterator[Pool]:
    with Pool([BUILT_IN[target]]) as pool:
        pool.start()
        yield pool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--target", default="torch")
    options = parser.parse_args()
    with started(options.target) as pool:
        bench = Bench(pool, options.target, options.data)
        for name in options.only or PARTS:
            began = time.monotonic()
            PARTS[name](bench)
            print(f"({name} took {time.monotonic() - began:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
