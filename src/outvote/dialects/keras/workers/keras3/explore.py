"""Explores Keras models inside one worker: gradient search, coverage, adversarial baseline."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from keras import ops

from outvote.core import explore_protocol as exploration
from outvote.core import protocol
from outvote.core.arrays import Array
from outvote.core.explore_protocol import NeuronRows, Rules
from outvote.dialects.keras.workers.keras3.graph import Tensor, Workshop
from outvote.dialects.keras.workers.keras3.models import OneModel, few_channels
from outvote.worker.explore.climb import ClimbSettings, Inputs, Search
from outvote.worker.explore.constraints import Memory, Move, built_in
from outvote.worker.explore.neurons import Activations, sections
from outvote.worker.main import Context, Refused
from outvote.worker.scripts import run_script

_LOOK = 8  # inputs that are looked at to know the shapes of all layers


class Explorer:
    """The models of one exploration, and what its tests have covered so far."""

    def __init__(
        self,
        context: Context,
        backend: Any,
        workshop: Workshop,
        request: exploration.OpenExplorer,
    ) -> None:
        if not hasattr(backend, "differentiate"):
            raise Refused(
                f"target {backend.libraries[0]} has no gradients to follow; "
                "choose torch, jax or tensorflow with --target"
            )
        self._context = context
        self._backend = backend
        self._threshold = request.threshold
        self._batch = request.batch
        self._narrow = few_channels(request.models)
        self._models = [
            OneModel(model, workshop, request.kind, request.skip) for model in request.models
        ]
        feeds = [np.array(context.blobs.get(digest)[:_LOOK]) for digest in request.sample]
        with backend.no_gradients():
            for model in self._models:
                model.prepare(feeds)
        self.widths = [model.width for model in self._models]
        self.neuron_counts = [sum(layer.width for layer in m.layers) for m in self._models]
        self._best = [np.zeros(count) for count in self.neuron_counts]
        self._plain = backend.quick(self._forward, self._variables)
        self._reduced = backend.quick(self._forward_reduced, self._variables)
        self._steepest = backend.differentiate(self._objective, self._variables)
        self._steepest_wide = backend.differentiate(self._objective_with_neurons, self._variables)
        self._search: Search | None = None
        self._found: Inputs = []  # by the last search
        self._walk: tuple[Inputs, list[Memory]] = [], []

    def describe(self) -> exploration.ExplorerOpened:
        layers = [
            [{"name": x.name, "kind": x.kind, "neurons": x.width} for x in model.layers]
            for model in self._models
        ]
        return exploration.ExplorerOpened(layers=layers, widths=tuple(self.widths))

    # What the search asks of its models (worker/explore/climb.py).

    def answers(self, inputs: Inputs) -> list[Array]:
        return self._in_batches(inputs, lambda part: self._run(self._plain, part))

    def gradients(
        self, inputs: Inputs, chosen: Sequence[Array], neurons: Sequence[Array] | None
    ) -> tuple[Inputs, list[Array]]:
        program = self._steepest if neurons is None else self._steepest_wide
        constants = [*chosen, *(neurons or ())]
        count = len(inputs[0])
        with self._kernels():
            found, answers = program(self._padded(inputs), self._padded(constants))
        missing = [
            np.zeros_like(x) if g is None else g[:count] for g, x in zip(found, inputs, strict=True)
        ]
        return missing, [a[:count] for a in answers]

    def uncovered(self) -> list[Array]:
        return [np.flatnonzero(~(best > self._threshold)) for best in self._best]

    def cover(self, inputs: Inputs) -> None:
        for best, seen in zip(self._best, self._activations(inputs), strict=True):
            if len(best):
                np.maximum(best, np.nan_to_num(seen.scaled()).max(axis=0), out=best)

    # What the driver asks.

    def prepare(self, request: exploration.PrepareSearch) -> protocol.Done:
        """Begin a search."""
        move = self._move(request)
        self._search = Search(
            self,
            request.oracle,
            [move] * len(request.rules),
            list(request.rules),
            ClimbSettings(request.lambda1, request.lambda2, request.iterations, request.seed),
        )
        self._total = request.total
        return protocol.Done()

    def search(self, request: exploration.SearchSeeds) -> exploration.SeedsSearched:
        """Lead the seeds from `start` to `stop` to differences; `keep` says which ones count."""
        assert self._search is not None
        start, stop = request.start, request.stop
        inputs = [np.array(self._context.blobs.get(d)[start:stop]) for d in request.seeds]
        count = stop - start
        began = time.process_time()
        self._context.begin(self._total)
        found = self._search.run(
            inputs,
            np.arange(start, stop),
            request.cycle,
            lambda share: self._context.reach(request.done + int(share * count)),
        )
        self._found = found.inputs
        return exploration.SeedsSearched(
            tried=found.tried,
            unmoved=found.unmoved,
            flat=found.flat,
            first=found.first,
            cpu=time.process_time() - began,
            index=found.index,
            iterations=found.iterations,
            chosen=found.chosen,
            already=found.already,
            inputs=tuple(found.inputs),
            answers=tuple(found.answers),
            before=tuple(found.before),
        )

    def keep(self, request: exploration.KeepFinds) -> exploration.FindsKept:
        """Cover these of the inputs that the last search has found; the coverage so far."""
        began = time.process_time()
        if request.rows:
            self.cover([array[list(request.rows)] for array in self._found])
        return exploration.FindsKept(cpu=time.process_time() - began, best=tuple(self._best))

    def ask(self, request: exploration.AskModels) -> exploration.ModelAnswers:
        """Each model's answers to the inputs sent along."""
        return exploration.ModelAnswers(answers=tuple(self.answers(list(request.inputs))))

    def steepest(self, request: exploration.FindGradients) -> exploration.Gradients:
        """Gradients of the weighted answers."""
        return exploration.Gradients(gradients=self._weighted(request.inputs, request.weights))

    def _weighted(self, feeds: Sequence[Array], weights: Sequence[Array]) -> tuple[Array, ...]:
        parts = [
            self.gradients(
                [a[i : i + self._batch] for a in feeds],
                [w[i : i + self._batch] for w in weights],
                None,
            )[0]
            for i in range(0, len(feeds[0]), self._batch)
        ]
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))

    def move(self, request: exploration.MoveInputs) -> exploration.InputsMoved:
        """Move all inputs once along the gradient of their weighted outputs."""
        assert self._search is not None
        now = list(request.inputs)
        if request.fresh:
            self._walk = now, [{} for _ in now]
        seeds, memories = self._walk
        gradients = self._weighted(now, request.weights)
        moved = tuple(
            move(x, gradient, seed, memory, rules)
            for move, rules, x, gradient, seed, memory in zip(
                self._search.moves, self._search.rules, now, gradients, seeds, memories, strict=True
            )
        )
        return exploration.InputsMoved(inputs=moved)

    def measure(self, request: exploration.MeasureCoverage) -> exploration.CoverageMeasured:
        """Coverage of a test set, per model: rows that can be merged with those of other sets."""
        stored = [self._context.blobs.get(digest) for digest in request.stored]
        feeds = stored or list(request.inputs)
        merged: list[NeuronRows] | None = None
        if request.total:
            self._context.begin(request.total)
        for start in range(0, len(feeds[0]), self._batch):
            part = [np.array(a[start : start + self._batch]) for a in feeds]
            rows: list[NeuronRows] = []
            for k, seen in enumerate(self._activations(part)):
                profile = request.profile[k] if request.profile else None
                rows.append(_rows(seen, start, self._threshold, profile, request))
            merged = (
                rows
                if merged is None
                else [_merged(a, b) for a, b in zip(merged, rows, strict=True)]
            )
            if request.total:
                self._context.reach(request.done + min(start + self._batch, len(feeds[0])))
        assert merged is not None
        return exploration.CoverageMeasured(models=tuple(merged))

    # How the models become programs.

    def _variables(self) -> list[Any]:
        found = {id(v): v for model in self._models for v in model.variables()}
        return list(found.values())

    def _forward(self, feeds: Sequence[Tensor]) -> list[Tensor]:
        return [model.answer(feeds) for model in self._models]

    def _forward_reduced(self, feeds: Sequence[Tensor]) -> list[Tensor]:
        results = []
        for model in self._models:
            _, neurons, extra = model.forward(feeds, reduce=True)
            results += [neurons, *extra]
        return results

    def _objective(
        self, feeds: Sequence[Tensor], constants: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        answers = [model.answer(feeds) for model in self._models]
        terms = [ops.sum(a * c) for a, c in zip(answers, constants, strict=True)]
        return sum(terms[1:], terms[0]), answers

    def _objective_with_neurons(
        self, feeds: Sequence[Tensor], constants: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        terms, answers = [], []
        count = len(self._models)
        for model, chosen, wanted in zip(
            self._models, constants[:count], constants[count:], strict=True
        ):
            answer, neurons, _ = model.forward(feeds, reduce=False)
            terms += [ops.sum(answer * chosen), ops.sum(neurons * wanted)]
            answers.append(answer)
        return sum(terms[1:], terms[0]), answers

    def _activations(self, inputs: Inputs) -> list[Activations]:
        flat = iter(self._in_batches(inputs, lambda part: self._run(self._reduced, part)))
        found = []
        for model in self._models:
            neurons = next(flat)
            none = np.zeros((len(neurons), 0))
            lows, highs = (next(flat), next(flat)) if model.layers else (none, none)
            found.append(model.activations(neurons, lows, highs))
        return found

    def _in_batches(self, inputs: Inputs, run: Any) -> list[Array]:
        parts = [
            run([a[start : start + self._batch] for a in inputs])
            for start in range(0, len(inputs[0]), self._batch)
        ]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _run(self, program: Any, feeds: Inputs) -> list[Array]:
        count = len(feeds[0])
        with self._backend.no_gradients(), self._kernels():
            return [array[:count] for array in program(self._padded(feeds))[0]]

    def _padded(self, arrays: Sequence[Array]) -> list[Array]:
        """Batches of few sizes where every size is compiled anew: filled up with copies."""
        count = len(arrays[0])
        if not self._backend.fixed_shapes:
            return list(arrays)
        size = next(n for n in _sizes(self._batch) if n >= count)
        return [np.concatenate([a, np.repeat(a[-1:], size - count, axis=0)]) for a in arrays]

    def _move(self, request: exploration.PrepareSearch) -> Move:
        """The constraint of that name, or the user's own."""
        if request.script is None:
            return built_in(request.constraint)
        name = request.script.name
        scope = run_script(request.script, self._context, "constraint file", "__constraint__")
        move = scope.get("move")
        if not callable(move):
            raise Refused(
                f"the constraint file {name} defines no function `move(x, gradient, seed, "
                "memory, rules)`; see docs/explore.md"
            )
        return _checked(move, name)

    def _kernels(self) -> AbstractContextManager[Any]:
        """Without oneDNN where PyTorch's own kernels are faster: narrow convolutions."""
        narrow = getattr(self._backend, "for_narrow_convolutions", nullcontext)
        return narrow() if self._narrow else nullcontext()


def _sizes(batch: int) -> list[int]:
    """The sizes of batches that are compiled: few, because each takes seconds."""
    sizes = [batch]
    while sizes[0] > 4:
        sizes.insert(0, -(-sizes[0] // 4))
    return sizes


def _checked(move: Any, name: str) -> Move:
    """A user's constraint must give inputs of the same shape, and stay in range."""

    def checked(x: Array, gradient: Array, seed: Array, memory: Any, rules: Rules) -> Array:
        try:
            moved = np.asarray(move(x, gradient, seed, memory, rules), x.dtype)
        except Exception as error:
            kind = type(error).__name__
            raise Refused(f"the constraint file {name} failed with {kind}: {error}") from error
        if moved.shape != x.shape:
            raise Refused(
                f"the constraint file {name} made inputs of shape {moved.shape} from {x.shape}; "
                "return as many as you are given"
            )
        return rules.clip(moved)

    return checked


def _rows(
    seen: Activations,
    start: int,
    threshold: float,
    profile: tuple[Array, Array] | None,
    request: exploration.MeasureCoverage,
) -> NeuronRows:
    """What is kept of a batch, one number per neuron."""
    scaled = np.nan_to_num(seen.scaled())
    over = scaled > threshold
    first = np.where(over.any(axis=0), over.argmax(axis=0) + start, np.iinfo(np.int64).max)
    return NeuronRows(
        best=scaled.max(axis=0),
        high=seen.neurons.max(axis=0),
        low=seen.neurons.min(axis=0),
        first=first,
        top=seen.top(request.top),
        sections=(
            sections(seen.neurons, *profile, request.section_count) if profile is not None else None
        ),
    )


def _merged(a: NeuronRows, b: NeuronRows) -> NeuronRows:
    sections = None
    if a.sections is not None and b.sections is not None:
        sections = np.logical_or(a.sections, b.sections)
    return NeuronRows(
        best=np.maximum(a.best, b.best),
        high=np.maximum(a.high, b.high),
        low=np.minimum(a.low, b.low),
        first=np.minimum(a.first, b.first),
        top=np.logical_or(a.top, b.top),
        sections=sections,
    )
