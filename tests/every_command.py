"""One result of every command, made by hand or by its writer, with no target to start.

`test_result_schema.py` holds them against the schema, so that what reports are tested with is of
the form that commands write.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import report_example
from conftest import fake
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.commands.coverage.job import CoverageJob, NeuronState
from outvote.commands.coverage.result import coverage_result
from outvote.commands.explore.result import explore_result
from outvote.commands.pollution.job import Evidence
from outvote.commands.pollution.result import pollution_result
from outvote.core.case import Data
from outvote.core.model import Input, Layer, Model, Ref
from outvote.core.protocol import Hello
from outvote.core.result import head, plain, target_head
from outvote.core.target import Outcome, Run
from outvote.explore.job import Coverage, Differences, Explored, ExploreJob, ModelUnderTest
from outvote.store.comparison import compared

CREATED = "2026-03-14T09:26:53+00:00"
HELLO = Run(
    "t",
    Outcome.OK,
    Hello(versions={"keras": "3"}, precision={}, python="3.11", platform="Linux"),
)
MODEL = Model(
    "m",
    (Input("x", (None, 8, 8, 1), "float32"),),
    (Layer("d", "Dense", {}, args=[{"$ref": ["x", 0]}]),),
    (Ref("d"),),
    dialect="keras",
)
PICTURES = np.random.default_rng(0).random((6, 8, 8, 1)).astype("float32")
LAYERS = [{"name": "d", "kind": "Dense", "neurons": 2}]


def explored(found: bool = True) -> Explored:
    """An exploration that has come to its end."""
    job = ExploreJob((Path("a.keras"), Path("b.keras")), Path("seeds.npz"), fake("t"))
    answers = [np.array([[0.9, 0.1]]), np.array([[0.2, 0.8]])]
    before = [np.array([[0.9, 0.1]])] * 2
    one = Differences(np.array([0]), [PICTURES[:1]], answers, before, np.array([3]), np.array([1]))
    best = [np.array([0.0, 1.0])] * 2
    kinds = ("explore", "random", "fgsm")
    return Explored(
        job,
        hello=HELLO,
        subjects=[ModelUnderTest(n, Path(f"{n}.keras"), MODEL, (None, 2)) for n in ("a", "b")],
        data=Data((PICTURES,), None, "seeds.npz", (0,)),
        layers=[LAYERS, LAYERS],
        tried=6,
        found=one if found else None,
        best=best,
        covered={kind: Coverage(best, [np.array([9, 0])] * 2, 6) for kind in kinds},
        split_by=dict.fromkeys(kinds, 1),
        search_seconds=1.0,
        first_seconds=0.5 if found else None,
    )


def explore(found: bool = True) -> dict[str, Any]:
    accuracy = {"before": 0.5, "accuracy": [0.6]}
    done = {"added": 3, "train": 9, "test": 6, "others": {"finds": 2}, "epochs": 1}
    runs = [{"model": "a", "added": "random", **accuracy, "others": {"finds": accuracy}}]
    made = explored(found)
    made.retraining = {**done, "learning_rate": 1e-4, "runs": runs} if found else None
    return explore_result(made)


def coverage(trained: bool = True) -> dict[str, Any]:
    low, high = np.array([[0.0, 0.1], [0.5, 0.9]]) if trained else np.zeros((2, 0))
    ones = np.array([0.2, 0.9])
    state = NeuronState(ones, ones, ones, ones > 0, np.ones((2, 3), bool), low, high, 6)
    job = CoverageJob(Path("m.keras"), Path("d.npz"), fake("t"))
    data = Data((PICTURES,), None, "d.npz", (0,))
    return coverage_result(job, MODEL, data, HELLO, LAYERS, state, datetime.now(UTC), 1.0)


def pollution(sure: bool = True) -> dict[str, Any]:
    made = explored(found=False)
    evidence = Evidence(9, 1, PICTURES[:2], PICTURES[2:], 0.2) if sure else None
    suspects, scores = (np.array([4]), np.array([0.5])) if sure else (np.zeros(0, int), np.zeros(0))
    data = {"source": "train.npz", "instances": 6}
    return pollution_result(made.job, made, evidence, suspects, scores, PICTURES, data)


def _head(command: str, verdict: str, summary: str, targets: tuple[str, ...]) -> dict[str, Any]:
    return head(
        command,
        [target_head(fake(name), HELLO) for name in targets],
        {"source": "d.npz", "instances": 6},
        created=CREATED,
        seconds=2.5,
        verdict=verdict,
        summary=summary,
        warnings=["one target is slow"],
    )


MODEL_HEAD = {"name": "m", "path": "m.keras", "layers": 1}


def localize() -> dict[str, Any]:
    cause = {"parameter": "units", "value": 3, "cured_by": [2, 4], "tried": 5}
    accident = {"parameter": "use_bias", "value": False, "failure": "crash"}
    first = {"layer": "d", "layer_kind": "Dense", "rate": None, "same_as": None}
    again = {"layer": "e", "layer_kind": "Dense", "rate": 2000.0, "same_as": "d"}
    suspects = [
        {**first, "causes": [cause], "accidents": [accident]},
        {**again, "causes": [], "accidents": []},
    ]
    pair = {"targets": ["a", "b"], "input": 3, "suspects": suspects, "cradle": ["d"]}
    return {
        **_head("localize", "inconsistent", "2 layers suspected.", ("a", "b")),
        "model": MODEL_HEAD,
        "settings": {"t1": 1000.0, "t2": 2.0, "seed": 0},
        "pairs": [{**pair, "stopped_at": None}],
    }


def nan() -> dict[str, Any]:
    layer = {"layer": "d", "layer_kind": "Dense", "smallest": None, "largest": 3e38}
    return {
        **_head("nan", "inconsistent", "NaN in Dense layer 'd'.", ("a",)),
        "model": MODEL_HEAD,
        "settings": {"target": "a", "level": "IN", "seed": 0},
        "failure": "nan",
        "evaluations": 40,
        "fitness": None,
        "first_overflow": "d",
        "first_nan": "d",
        "layers": [{**layer, "nans": 1, "infinities": 2}],
        "case": "nan",
    }


def bisect() -> dict[str, Any]:
    def row(version: str, state: str, distance: float | None) -> dict[str, Any]:
        name = None if state == "skipped" else f"keras=={version}/torch"
        told = {"version": version, "target": name, "state": state, "message": ""}
        return {**told, "distance": distance, "distance_to_first": None}

    rows = [row("1.0", "consistent", 0.0), row("1.1", "skipped", None), row("1.2", "error", None)]
    names = ("jax", "keras==1.0/torch", "keras==1.2/torch")
    return {
        **_head("bisect", "changed", "keras on torch: first bad in 1.2.", names),
        "bisect": {
            "package": "keras",
            "target": "torch",
            "reference": "jax",
            "case": "m.keras",
            "from": "1.0",
            "to": "1.2",
            "change": "broken",
            "before": "1.0",
            "after": "1.2",
            "tolerance": 1e-5,
            "releases": rows,
            "untried": ["1.1"],
        },
    }


def between() -> dict[str, Any]:
    """`explore --targets`: a check with what the search adds."""
    return {
        **report_example.inconsistent(),
        "command": "explore",
        "seeds": 4,
        "already_different": 0,
        "differences": {"total": 1, "per_model": {"jax": 1}},
        "coverage": None,
        "distance": {"followed": "torch", "before": 0.0, "after": 1.0, "grew": 4},
        "search_seconds": 1.0,
        "inputs": "inputs.npz",
    }


def compare() -> dict[str, Any]:
    first = fuzz()
    other = {**fuzz(), "strategy": "random"}
    return compared({"first": first, "other": other}, CREATED)


def fuzz() -> dict[str, Any]:
    """A campaign with one finding, and all figures that there may be."""
    found = report_example.bug(None)
    seed = SeedFile("seed", Path("seed.keras"), None)
    job = FuzzJob((seed,), (fake("a"), fake("b")), budget=Budget(mutants=8), inputs=4)
    step = {"mutant": 1, "rule": None, "new": "seed", "acc": 0.5}
    lineage = [step, {"mutant": 7, "rule": "LA", "new": "Rescaling", "acc": None}]
    seen = {"count": 3, "first": 7, "last": 9, "first_at": 1.5, "last_at": 2.0}
    targets = [target_head(fake(name), HELLO) for name in ("a", "b")]
    more = {"seconds": 1.0, "restarts": 0, "peak_memory": 5 << 20}
    pair = {"seed": "seed", "targets": ["a", "b"], "inconsistencies": 2, "mutants_only": 2}
    means = {"initial_only": 0, "initial_mean": 0.2, "mutants_mean": 0.4}
    return {
        **head(
            "fuzz",
            [{**target, **more} for target in targets],
            None,
            created=CREATED,
            seconds=12.0,
            verdict="inconsistent",
            summary="8 mutants at 40 a minute, 1 finding.",
            warnings=["1.0% of the mutants could not be run by any target"],
            findings=[{**found, **seen, "found_by": "mutant", "lineage": lineage}],
        ),
        "gate": report_example.result("", "", [], [], [])["gate"],
        "strategy": "lemon",
        "settings": job.stored(),
        "seeds": [
            {"number": 1, "name": "seed", "layers": 5, "acc": 0.5, "findings": 1, "by_mutants": 1}
        ],
        "tested": 8,
        "valid": 7,
        "invalid": 1,
        "invalid_examples": [{"mutant": 4, "rule": "LA", "new": "Add", "message": "no"}],
        "rounding": 1,
        "flaky": 0,
        "rules": [
            {"rule": "LA", "tested": 8, "valid": 7, "amplified": 2, "joined": 2, "findings": 1}
        ],
        "amplification": [{**pair, **means, "amplification": 1.0, "largest": 0.6}],
        "kinds": {"drawn": {"Add": 1}, "drawable": 2, "exercised": 1, "not_covered": {"X": "no"}},
        "values": {"exercised": 1, "parameters": 1, "counts": {"Add axis even": 1}},
        "accepted_everywhere": {"units=0 of Dense": 1},
        "lines": {"a": {"reached": 70, "of": 900}},
        "arms": [{"strategy": "lemon", "requests": 8, "found": 1}],
        "throughput": [[6.0, 40.0], [12.0, 40.0]],
        "time": {
            **{"total": 12.0, "starting": 1.0, "breeding": 11.0, "making": 1.0, "looking": 2.0},
            **{"looks": 3, "refused_draws": 0, "recycled": 0, "waiting": 1},
            **{"searching": 8.0, "confirming": 1.0},
        },
        "waiting": [["Dense | b: inconsistency", 4]],
        "sieve": None,
        "samples": [[1, "a", 0.1, 1 << 20, 0], [8, "a", 0.1, 1 << 20, 0]],
        "bugs": [
            {
                "target": "patched",
                "kind": "inconsistency",
                "by_mutants": 1,
                "by_seeds": 0,
                "initial_only": 0,
                "mutants": 6.0,
                "seconds": 1.2,
            }
        ],
        "counts": {
            "lemon": {
                "bugs": [
                    {
                        **{"target": "patched", "layer_kind": "BatchNormalization"},
                        **{"findings": [found["fingerprint"]], "mutants_only": True},
                        **{"initial_only": False, "first": 7, "first_at": 1.5},
                    }
                ],
                "mutants_only": 1,
                "initial_only": 0,
                "mutants_per_bug": 8.0,
                "seconds_per_bug": 11.0,
            },
            "audee": {"networks": 8, "inconsistencies": 3},
        },
        "comparison": None,
    }


def with_rival() -> dict[str, Any]:
    return {**fuzz(), "comparison": compare()}


MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    "check": report_example.inconsistent,
    "fuzz": fuzz,
    "fuzz --compare": with_rival,
    "report": compare,
    "explore": explore,
    "explore --targets": between,
    "coverage": coverage,
    "pollution": pollution,
    "localize": localize,
    "nan": nan,
    "bisect": bisect,
}
RESULTS: dict[str, dict[str, Any]] = {name: plain(make()) for name, make in MAKERS.items()}
