"""Runs specimens on targets and says what shows: the one experiment that all stages share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from outvote.bench.feigned import without_feigned
from outvote.bench.noise import asking, choose_instruments, measured, moves_only
from outvote.core.model import Weight
from outvote.core.outputs import Outputs
from outvote.core.protocol import Ran, RebuildLayers, RunModel, TellDefaults
from outvote.core.specimen import Specimen, weights_for
from outvote.core.target import Outcome, Run, Target
from outvote.judge.compare import Settings
from outvote.judge.observation import Observation, observed
from outvote.judge.rounding import Rounding, layer_rounding
from outvote.judge.tolerance import beyond_noise, terms_of
from outvote.run.pool import Pool
from outvote.run.settle import RETRIES, ask_all_settled, ask_settled


@dataclass
class Bench:
    """The targets of a pool, ready for experiments. `runs` counts them."""

    pool: Pool
    targets: Mapping[str, Target]
    settings: Settings
    runs: int = 0
    retries: int = RETRIES  # after a death

    def run(
        self,
        specimen: Specimen,
        names: Sequence[str],
        *,
        jitter: int | None = None,
        watch: Sequence[str] = (),
        exact: bool = False,
    ) -> dict[str, Run[Ran]]:
        """The specimen on these targets; layers to `watch` are told for the whole batch."""
        self.runs += 1
        request = RunModel(
            model=specimen.model,
            inputs=tuple(self.pool.blobs.put(array) for array in specimen.inputs),
            batch=max(1, specimen.count),
            jitter=jitter,
            keep=bool(watch),
            watch=tuple(watch),
            rows=specimen.count if watch else 1,
            exact=exact,
            steps=len(specimen.model.layers),
        )
        runs = ask_all_settled(self.pool, names, request, retries=self.retries)
        return {name: without_feigned(run, self.pool.targets) for name, run in runs.items()}

    def observe(
        self, specimen: Specimen, names: Sequence[str], quickly: bool = False
    ) -> Observation:
        """Run it and judge: who differs from whom, and by more than rounding.

        `quickly`: where a difference is beyond what rounding of a layer amounts to, as a rule, its
        noise is not measured.
        """
        runs = self.run(specimen, names)
        outputs = {n: run.reply.outputs for n, run in runs.items() if run.ok}
        failures = {
            n: r for n, r in runs.items() if not r.ok and r.outcome is not Outcome.UNSUPPORTED
        }
        rounding = self.rounding(specimen, outputs)
        if not (quickly and _is_plain(rounding, specimen, outputs)):
            rounding = self.with_noise(rounding, specimen, outputs)
        return self.judged(outputs, failures, rounding, specimen)

    def judged(
        self,
        outputs: Mapping[str, Outputs],
        failures: Mapping[str, Run],
        rounding: Rounding,
        specimen: Specimen,
    ) -> Observation:
        """Outputs and failures held against each other: groups, the vote, the kind."""
        kind = specimen.last.kind
        return observed(specimen.inputs, outputs, failures, rounding, self.targets, kind)

    def rounding(self, specimen: Specimen, outputs: Mapping[str, Outputs]) -> Rounding:
        """What needs no explanation of what a specimen gives."""
        terms = terms_of(specimen.model.layers, specimen.inputs)
        return layer_rounding(outputs.values(), terms, self.settings.noise_factor)

    def with_noise(
        self, rounding: Rounding, specimen: Specimen, outputs: Mapping[str, Outputs]
    ) -> Rounding:
        """Raised by the noise floor, where a pair differs at all and could agree then."""
        gaps = rounding.gaps(outputs).values()
        if not any(not gap.explained and math.isfinite(gap.distance) for gap in gaps):
            return rounding
        if moves_only(specimen.model.dialect, specimen.model.layers):
            return rounding
        instruments = choose_instruments({name: self.targets[name] for name in outputs})
        ask = asking(self.pool, specimen.model, specimen.inputs, instruments)
        return measured(rounding, outputs, ask, {name: outputs[name] for name in instruments})

    def rebuilt(self, specimen: Specimen, name: str) -> Specimen | None:
        """The specimen with weights fitted to its new configurations and shapes.

        `name` is the target whose Keras builds it. None where Keras refuses.
        """
        shapes = tuple(array.shape for array in specimen.inputs)
        run = ask_settled(self.pool, name, RebuildLayers(model=specimen.model, shapes=shapes))
        if run.outcome is Outcome.UNSUPPORTED:
            return specimen  # its layers hold no shapes that would have to be fitted
        if not run.ok:
            return None
        layers = []
        for layer, told in zip(specimen.model.layers, run.reply.layers, strict=True):
            weights: Sequence[Weight] = weights_for(layer, told.weights, self.pool.blobs)
            layers.append(
                replace(
                    layer,
                    config=told.config,
                    origin={**layer.origin, **told.origin},
                    weights=tuple(weights),
                )
            )
        return replace(specimen, model=replace(specimen.model, layers=tuple(layers)))

    def defaults(self, specimen: Specimen, name: str) -> Mapping[str, Mapping[str, Any]]:
        """For each layer the configuration that it has when only what is required is given."""
        run = ask_settled(self.pool, name, TellDefaults(model=specimen.model))
        return run.reply.defaults if run.ok else {}


def _is_plain(rounding: Rounding, specimen: Specimen, outputs: Mapping[str, Outputs]) -> bool:
    """Whether every difference is larger than rounding of one layer makes it."""
    dtypes = {dtype for found in outputs.values() for dtype in found.dtypes}
    layers = len(specimen.model.layers)
    most = max((beyond_noise(dtype, layers) for dtype in dtypes), default=math.inf)
    apart = [gap.distance for gap in rounding.gaps(outputs).values() if not gap.explained]
    return all(not distance < most for distance in apart)
