"""New layers in training, and losses, optimisers, regularisers, constraints as cases of their own.

Every target gets the same tensors and the same cotangent; the tensors are those that the layer
reads in its model, or come from a pool of kinks, ties and numbers at which activations saturate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.exercise import do, observe
from outvote.bench.reader import choose_reference
from outvote.campaign.investigate import Conclusion
from outvote.campaign.oracle import Judged
from outvote.campaign.runner import ModelRun, Runner
from outvote.campaign.seeds import Seed
from outvote.campaign.stage_judge import StageJudge, place_of
from outvote.core.arrays import Array
from outvote.core.cuts import one_layer
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.exercises import Pull
from outvote.core.model import Layer, Model
from outvote.core.source import one_line
from outvote.core.states import State
from outvote.core.target import Run, Target
from outvote.core.train_protocol import ListStages, PrepareTraining, StagesListed
from outvote.judge.compare import Settings
from outvote.mutate import extremes
from outvote.run.settle import ask_settled
from outvote.triage.stage_teller import StagePlace

NAME = "gradients"
TITLE = "targets differ in training: gradients of a layer, losses, updates, regularisers"
IF_ASKED = True
_POOLED = 0.5  # of the layers, that are also given numbers of the pool
_WAYS = (extremes.steps, extremes.ties, extremes.moderate, extremes.usual)
_EMPTY = 0.05
_LETTERS = 120  # of a message
_STAGES = 4  # with every mutant: they cost a fraction of what it costs


def require(targets: Sequence[Target]) -> None:
    """Two targets that differentiate, or there is nothing to compare."""
    able = [target.name for target in targets if target.can("pullback")]
    if len(able) < 2:
        raise UsageError(
            f"--oracle gradients needs two targets that give gradients; received "
            f"{', '.join(able) or 'none'} of {', '.join(t.name for t in targets)}"
        )


class GradientOracle:
    """Compares training of every new layer, and a drawn stage, mutant by mutant."""

    def __init__(self, runner: Runner, targets: Mapping[str, Target]) -> None:
        self._runner = runner
        names = [name for name in runner.names if targets[name].can("pullback")]
        self._bench = Bench(runner.pool, {name: targets[name] for name in names}, Settings())
        self._judge = StageJudge(self._bench)
        self._stages: StagesListed | None = None

    def look(self, seed: Seed, model: Model, judged: Judged) -> Conclusion:
        """Each layer that was watched, alone; then stages, drawn by what the model is."""
        able = [name for name in judged.outputs if name in self._bench.targets]
        if len(able) < 2:
            return Conclusion()
        rng = np.random.default_rng(int(model.identity[:16], 16))
        concluded = Conclusion()
        for layer, given in self._watched(seed, model, judged, able):
            concluded += self._layer(layer, given, model.dialect, able, rng)
        for _ in range(_STAGES):
            concluded += self._stage(model.dialect, able, rng)
        return concluded

    def _watched(
        self, seed: Seed, model: Model, judged: Judged, able: Sequence[str]
    ) -> list[tuple[Layer, list[State]]]:
        """New layers, and what they read."""
        names = dict.fromkeys(name for found in judged.hidden.values() for name in found)
        layers = [model.layer(name) for name in names]
        watching = [name for name in able if self._bench.targets[name].can("watch")]
        if not layers or not watching:
            return []
        reads = list(dict.fromkeys(name for layer in layers for name in layer.inputs))
        who = choose_reference(watching, self._bench.targets)
        states = self._runner.hidden(who, ModelRun(seed, model, reads))
        if states is None:
            return []
        return [
            (layer, [states[ref.producer][ref.index] for ref in layer.refs()]) for layer in layers
        ]

    def _layer(
        self,
        layer: Layer,
        given: Sequence[State],
        spoken: str,
        able: Sequence[str],
        rng: np.random.Generator,
    ) -> Conclusion:
        alone, arrays = one_layer(spoken, layer, given)
        if not all(np.isfinite(a).all() for a in arrays if a.dtype.kind == "f"):
            return Conclusion()  # at infinity there is no derivative
        run = ask_settled(self._bench.pool, able[0], PrepareTraining(model=alone))
        if not run.ok:
            return _left_out(f"training of {layer.kind} layers", able[0], run)
        if run.reply.drawing:  # it draws at random: nothing to compare
            return Conclusion()
        (trained,) = run.reply.model.layers
        pulls = [self._pull(run.reply.model, tuple(arrays), able[0], rng)]
        if rng.random() < _POOLED:
            pulls.append(self._pull(run.reply.model, _pooled(arrays, rng), able[0], rng))
        concluded = Conclusion()
        for pull in pulls:
            if pull is None:
                continue
            done = do(self._bench, pull, able)
            if observe(self._bench, done, "forward", kind=layer.kind).kind is not None:
                continue  # what it gives differs: other oracles see that
            for part in ("gradient", "statistics"):
                told = f"the {part} of {layer.kind} layer {layer.name!r}"
                place = StagePlace(part, told, layer.kind, trained)
                concluded += self._judge.judged(done, part, place, spoken)
        return concluded

    def _pull(
        self, model: Model, arrays: tuple[Array, ...], who: str, rng: np.random.Generator
    ) -> Pull | None:
        """With a cotangent of the shape that one target gives; None: there is no gradient."""
        asked = replace(model, outputs=model.outputs[:1])
        found = do(self._bench, Pull(asked, arrays, (np.ones((), np.float32),)), [who])
        if who not in found.replies:
            return None
        output = found.replies[who].outputs.arrays[0]
        cotangent = rng.normal(size=output.shape).astype(output.dtype)
        return Pull(asked, arrays, (cotangent,))

    def _stage(self, spoken: str, able: Sequence[str], rng: np.random.Generator) -> Conclusion:
        cases = dialect(spoken).stage_cases
        concluded = Conclusion()
        if cases is None:
            return concluded
        if self._stages is None:
            run = self._bench.pool.ask(able[0], ListStages())
            if not run.ok:
                return _left_out("losses, optimisers, regularisers and constraints", able[0], run)
            self._stages = run.reply
            concluded += _unknown(run.reply)
        drawn = cases.drawn_stage(self._stages, self._bench.pool.blobs, rng)
        done = do(self._bench, drawn.exercise, able)
        for part in drawn.parts:
            concluded += self._judge.judged(done, part, place_of(drawn, part), spoken)
        return concluded


def _unknown(listed: StagesListed) -> Conclusion:
    """Losses that take another form of truth than those which are drawn."""
    names = sorted(listed.losses.keys() - listed.truths.keys())
    told = f"the losses {', '.join(names)} are not compared: what they take for truth is not known"
    return Conclusion(left_out=frozenset({told} if names else ()))


def _left_out(what: str, who: str, run: Run[Any]) -> Conclusion:
    """Told once: a sentence is the same each time."""
    why = one_line(run.message)[:_LETTERS]
    return Conclusion(left_out=frozenset({f"{what} are not compared: {who} says {why!r}"}))


def _pooled(arrays: Sequence[Array], rng: np.random.Generator) -> tuple[Array, ...]:
    """Floats at kinks, tied or where activations saturate; indices that repeat; now and then
    no instance at all."""
    way = _WAYS[int(rng.integers(len(_WAYS)))]
    empty = rng.random() < _EMPTY
    found = []
    for array in arrays:
        filled = array
        if array.dtype.kind == "f":
            filled = extremes.filled(way, array.shape, array.dtype.name, rng)
        elif array.dtype.kind in "iu" and array.size:
            filled = np.broadcast_to(array.reshape(-1)[:1], array.shape).copy()
        found.append(filled[:0] if empty and filled.ndim else filled)
    return tuple(found)


def create(runner: Runner, targets: Mapping[str, Target]) -> GradientOracle:
    return GradientOracle(runner, targets)
