"""Runs specimens on targets and says what shows: the one experiment that all stages share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from outvote.bench.noise import PROBES
from outvote.core.model import Weight
from outvote.core.outputs import Outputs, outputs_of
from outvote.core.specimen import Specimen, weights_for
from outvote.core.target import Outcome, Run, Target
from outvote.judge.compare import Settings, distance, mismatch_of, only_width_differs
from outvote.judge.distances import noise_of
from outvote.judge.observation import Observation
from outvote.judge.refusals import Answers, vote_on
from outvote.judge.tolerance import tolerance_of
from outvote.judge.vote import Vote
from outvote.run.pool import Pool, Request

_DEATHS = 2  # of a worker in a row, that are put down to the specimen
_PLAIN = 1e-2  # a distance that no rounding of one layer explains: its noise need not be measured


@dataclass
class Bench:
    """The targets of a pool, ready for experiments. `runs` counts them."""

    pool: Pool
    targets: Mapping[str, Target]
    settings: Settings
    runs: int = 0
    retries: int = _DEATHS

    def run(self, specimen: Specimen, names: Sequence[str], **more: Any) -> dict[str, Run]:
        self.runs += 1
        arguments = {
            "model": specimen.model.to_json(),
            "inputs": [self.pool.blobs.put(array) for array in specimen.inputs],
            "batch": max(1, specimen.count),
            **more,
        }
        request = Request("run", arguments, steps=len(specimen.model.layers))
        found = self.pool.ask_all(names, request)
        return {name: self._settled(name, request, run) for name, run in found.items()}

    def _settled(self, name: str, request: Request, run: Run) -> Run:
        """A death counts if a fresh worker dies too: someone else may have killed the first."""
        for _ in range(self.retries):
            if run.outcome not in (Outcome.CRASH, Outcome.MEMORY, Outcome.GARBAGE):
                break
            run = self.pool.ask(name, request)
        return run

    def observe(self, specimen: Specimen, names: Sequence[str]) -> Observation:
        """Run it and judge: who differs from whom, and by more than rounding."""
        runs = self.run(specimen, names)
        outputs = {n: outputs_of(run) for n, run in runs.items() if run.ok}
        failures = {
            n: r for n, r in runs.items() if not r.ok and r.outcome is not Outcome.UNSUPPORTED
        }
        tolerance = max((tolerance_of(found) for found in outputs.values()), default=0.0)
        apart = _distances(outputs)
        finite = [d for d in apart.values() if np.isfinite(d)]
        if any(tolerance <= d < _PLAIN for d in finite):
            noise = self.noise(specimen, outputs)
            tolerance = max(tolerance, self.settings.noise_factor * noise)
        return self.judged(outputs, failures, tolerance, specimen)

    def judged(
        self,
        outputs: Mapping[str, Outputs],
        failures: Mapping[str, Run],
        tolerance: float,
        specimen: Specimen,
    ) -> Observation:
        """Outputs and failures held against each other: groups, the vote, the kind."""
        apart = _distances(outputs)
        if failures:  # beside a failure it does not matter how wide equal integers are
            apart = {
                (a, b): 0.0 if only_width_differs(outputs[a], outputs[b]) else d
                for (a, b), d in apart.items()
            }
        agreements = [pair for pair, d in apart.items() if d < tolerance]
        answers = Answers(specimen.inputs, outputs, failures)
        layer_kind = specimen.last.kind
        voted = vote_on(answers, agreements, self.targets, layer_kind)
        kind = _kind(outputs, failures, apart, tolerance, voted)
        # A mismatch is infinitely far too, but then what differs is the shape.
        far = [d for d in apart.values() if np.isfinite(d) or kind == "inconsistency"]
        worst = max((d for d in far if not np.isnan(d)), default=0.0)
        return Observation(outputs, failures, kind, worst, tolerance, voted, layer_kind)

    def noise(self, specimen: Specimen, plain: Mapping[str, Outputs]) -> float:
        """How far outputs move when every tensor moves by one unit in the last place."""
        instruments = [n for n in plain if self.targets[n].is_eager] or list(plain)
        movements: dict[str, list[float]] = {}
        for seed in PROBES:
            for name, run in self.run(specimen, instruments, jitter=seed).items():
                if run.ok:
                    moved = distance(plain[name], outputs_of(run))
                    movements.setdefault(name, []).append(moved)
        return float(noise_of(movements)) if movements else 0.0

    def rebuilt(self, specimen: Specimen, name: str) -> Specimen | None:
        """The specimen with weights fitted to its new configurations and shapes.

        `name` is the target whose Keras builds it. None where Keras refuses.
        """
        inputs = [list(array.shape) for array in specimen.inputs]
        arguments = {"model": specimen.model.to_json(), "shapes": inputs}
        run = self.pool.ask(
            name, Request("extra", {"module": "rebuild", "call": "rebuild", **arguments})
        )
        if run.outcome is Outcome.UNSUPPORTED:
            return specimen  # its layers hold no shapes that would have to be fitted
        if not run.ok:
            return None
        layers = []
        for layer, told in zip(specimen.model.layers, run.reply["layers"], strict=True):
            weights: Sequence[Weight] = weights_for(layer, told["weights"], self.pool.blobs)
            layers.append(
                replace(
                    layer,
                    config=told["config"],
                    origin={**layer.origin, **told["origin"]},
                    weights=tuple(weights),
                )
            )
        return replace(specimen, model=replace(specimen.model, layers=tuple(layers)))

    def defaults(self, specimen: Specimen, name: str) -> dict[str, dict[str, Any]]:
        """For each layer the configuration that it has when only what is required is given."""
        arguments = {"model": specimen.model.to_json()}
        run = self.pool.ask(
            name, Request("extra", {"module": "rebuild", "call": "defaults", **arguments})
        )
        return dict(run.reply["defaults"]) if run.ok else {}


def _distances(outputs: Mapping[str, Outputs]) -> dict[tuple[str, str], float]:
    return {(a, b): distance(outputs[a], outputs[b]) for a, b in combinations(outputs, 2)}


def _kind(
    outputs: Mapping[str, Outputs],
    failures: Mapping[str, Run],
    apart: Mapping[tuple[str, str], float],
    tolerance: float,
    voted: Vote,
) -> str | None:
    if len(voted.groups) < 2 or not outputs:
        return None  # where nobody gives a result there is nothing to hold against a failure
    odd = set(voted.outvoted) or {n for group in voted.groups for n in group}
    failed = [run for name, run in failures.items() if name in odd]
    if failed:
        return "hang" if failed[0].outcome is Outcome.HANG else "crash"
    if failures and voted.decided:
        return "shape"  # a result where the others refuse
    mixed = [(a, b) for (a, b), d in apart.items() if not d < tolerance and {a, b} & odd]
    if any(mismatch_of(outputs[a], outputs[b]) for a, b in mixed):
        return "shape"
    if any(np.isnan(apart[pair]) for pair in mixed):
        return "nan"
    return "inconsistency" if mixed else None
