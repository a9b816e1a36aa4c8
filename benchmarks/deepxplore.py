"""DeepXplore's tables and figure 9 in our form, with its own trained models.

    python benchmarks/deepxplore.py DATA                  # all parts
    python benchmarks/deepxplore.py DATA --only speed
    python benchmarks/deepxplore.py DATA --only coverage --domain MNIST

DATA is a folder with mnist_test.npz, pdf_contagio.npz, driving_64.npz and models/ (the LeNets and
PDF networks that the paper's authors published, and four steering networks). Beside each figure
stands the paper's. `benchmarks/deepxplore_uses.py` measures retraining and pollution.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deepxplore_first import first_difference
from outvote.commands.explore.result import explore_result
from outvote.core.arrays import Array
from outvote.core.explore_protocol import AskModels
from outvote.dialects.keras.targets import BUILT_IN
from outvote.explore.baselines import measure, random_inputs
from outvote.explore.expedition import Expedition, ask
from outvote.explore.explore import explore_in
from outvote.explore.job import Explored, ExploreJob
from outvote.run.local import LocalPool
from outvote.run.pool import Pool

ORIGINAL = 1.5  # seconds per seed of the authors' program, on an idle machine of this kind
DOMAINS = ("MNIST", "PDF", "Driving")
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


def pdf_features(data: Path, path: Path) -> None:
    """What may be done to a PDF file without breaking it, feature by feature.

    After Šrndić and Laskov (Practical evasion of a learning-based classifier, S&P 2014), whom the
    paper follows: content can be added, so counts and the size may grow; metadata are free; all
    else follows from the rest of the file and is left alone. The unit is one, standardised.
    """
    metadata = re.compile(
        r"(author|creator|keywords|producer|subject|title)_(dot|lc|len|num|oth|uc)|version"
        r"|(createdate|moddate)_(ts|tz)"
    )
    with np.load(data / "pdf_contagio.npz") as file, path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(("name", "unit", "increment", "decrement"))
        for name, std in zip(file["feature_names"], file["std"], strict=True):
            free = bool(metadata.fullmatch(name))
            grows = free or name.startswith("count_") or name == "size"
            writer.writerow((name, 1 / std, int(grows), int(free)))


class Bench:
    """One worker for all parts."""

    def __init__(
        self, pool: Pool, target: str, data: Path, folder: Path, names: Sequence[str]
    ) -> None:
        self.pool = pool
        self.target = target
        self.domains = domains(data)
        features = folder / "pdf_features.csv"
        pdf_features(data, features)
        self.domains["PDF"].settings["features"] = features
        self.domains = {name: self.domains[name] for name in names}

    def explore(self, domain: str, count: int, seed: int = 0, **more: Any) -> Explored:
        """The paper's setting on `count` random seeds."""
        return explore_in(self.pool, self.job(domain, count, seed, **more))

    def job(self, domain: str, count: int, seed: int = 0, **more: Any) -> ExploreJob:
        chosen = self.domains[domain]
        total = len(chosen.x)
        rows = np.random.default_rng(seed).choice(total, min(count, total), replace=False)
        settings = {"baselines": False, "threshold": 0.0, "iterations": 20, **chosen.settings}
        return ExploreJob(
            chosen.models,
            {"x": chosen.x[rows]},
            BUILT_IN[self.target],
            seed=seed,
            **{**settings, **more},
        )


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
    request = AskModels(inputs=(rounded,))
    answers = ask(bench.pool, explored.job.target, request).reply.answers
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
        trip = Expedition(bench.pool, explored.job, explored)
        coverage, _ = measure(trip, random_inputs(trip, 10))
        shares = ", ".join(f"{100 * float((b > 0.75).mean()):.1f}" for b in coverage.best)
        rows.append([name, shares, paper[name]])
    table(("data", "% per model", "paper's % per model"), rows)
    if "MNIST" in bench.domains:
        whole_test_set(bench)


def whole_test_set(bench: Bench) -> None:
    """What 7.1 says beside table 6; the paper does not say clearly at which t."""
    explored = bench.explore("MNIST", 10, iterations=1)
    everything = [bench.domains["MNIST"].x]
    coverage, _ = measure(Expedition(bench.pool, explored.job, explored), everything)
    rows = [
        [t, ", ".join(f"{100 * float((best > t).mean()):.1f}" for best in coverage.best)]
        for t in THRESHOLDS
    ]
    print("All of MNIST's test set (paper: 57.7, 76.4, 83.6 %)\n")
    table(("t", "% per model"), rows)


def full_coverage(bench: Bench) -> None:
    print("## Table 8: until all neurons outside of dense layers are covered, t = 0\n")
    paper = {"MNIST": "6.6 to 7.6 s, 9 seeds", "Driving": "9.8 to 12.3 s, 12 seeds"}
    rows = []
    for name, told in paper.items():
        if name not in bench.domains:
            continue
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
    """As the paper compares: for each t a search that wants neurons above t, and as many others."""
    print("## Figure 9: coverage by as many inputs (MNIST: 1 % of the test set), over t\n")
    rows = []
    gains: dict[str, list[float]] = {"random": [], "fgsm": []}
    counts = {"MNIST": 100, "PDF": 100, "Driving": 16}
    for name in bench.domains:
        count = counts[name]
        shares: dict[str, list[float]] = {}
        for t in THRESHOLDS:
            explored = bench.explore(name, count, baselines=True, threshold=t)
            for rival, coverage in explored.covered.items():
                total = sum(len(best) for best in coverage.best)
                hit = sum(int((best > t).sum()) for best in coverage.best)
                shares.setdefault(rival, []).append(hit / total)
        for rival, values in shares.items():
            told = [f"{value:.1%}" for value in values]
            rows.append([name, rival, coverage.tests, explored.split_by[rival], *told])
            if rival in gains:
                gains[rival] += np.subtract(shares["explore"], values).tolist()
    head = ("data", "inputs by", "inputs", "that split", *(f"t = {t}" for t in THRESHOLDS))
    table(head, rows)
    for rival, paper in (("random", 34.4), ("fgsm", 33.2)):
        mean = 100 * float(np.mean(gains[rival]))
        print(f"over {rival}, on average: {mean:+.1f} points (paper {paper:+.1f})")
    print(flush=True)


PARTS: dict[str, Callable[[Bench], None]] = {
    "speed": speed,
    "scaling": scaling,
    "differences": differences,
    "coverage": curves,
    "diversity": diversity,
    "ten-inputs": ten_inputs,
    "full-coverage": full_coverage,
    "first-difference": lambda bench: first_difference(bench.pool, bench.domains, bench.job, table),
}


@contextmanager
def started(target: str) -> Iterator[Pool]:
    with LocalPool([BUILT_IN[target]]) as pool:
        pool.start()
        yield pool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--domain", choices=DOMAINS, action="append", help="default: all")
    parser.add_argument("--target", default="torch")
    options = parser.parse_args()
    with started(options.target) as pool, tempfile.TemporaryDirectory() as folder:
        bench = Bench(pool, options.target, options.data, Path(folder), options.domain or DOMAINS)
        for name in options.only or PARTS:
            began = time.monotonic()
            PARTS[name](bench)
            print(f"({name} took {time.monotonic() - began:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
