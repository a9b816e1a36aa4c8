"""Explores Keras models inside one worker: gradient search, coverage, adversarial baseline."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops

from outvote.core.answers import Oracle
from outvote.core.arrays import Array
from outvote.core.model import Model
from outvote.dialects.keras.workers.keras3.graph import Tensor, Workshop
from outvote.dialects.keras.workers.keras3.models import OneModel, few_channels
from outvote.worker.explore.climb import Inputs, Search, Settings
from outvote.worker.explore.constraints import Memory, Move, Rules, built_in
from outvote.worker.explore.neurons import Activations, sections
from outvote.worker.main import Context, Refused, Reply

_LOOK = 8  # inputs that are looked at to know the shapes of all layers


class Explorer:
    """The models of one exploration, and what its tests have covered so far."""

    def __init__(
        self,
        context: Context,
        backend: Any,
        workshop: Workshop,
        models: list[Any],
        sample: list[str],
        kind: str,
        skip: list[str],
        threshold: float,
        batch: int,
    ) -> None:
        if not hasattr(backend, "differentiate"):
            raise Refused(
                f"target {backend.libraries[0]} has no gradients to follow; "
                "choose torch, jax or tensorflow with --target"
            )
        self._context = context
        self._backend = backend
        self._threshold = threshold
        self._batch = batch
        backend.set_wide("float64" in json.dumps(models))
        parsed = [Model.from_json(model) for model in models]
        self._narrow = few_channels(parsed)
        self._models = [OneModel(model, workshop, kind, skip) for model in parsed]
        feeds = [np.array(context.blobs.get(digest)[:_LOOK]) for digest in sample]
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

    def describe(self) -> dict[str, Any]:
        layers = [
            [{"name": x.name, "kind": x.kind, "neurons": x.width} for x in model.layers]
            for model in self._models
        ]
        return {"layers": layers, "widths": self.widths}

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

    def prepare(
        self,
        arrays: list[Array],
        constraint: str,
        rules: list[dict[str, Any]],
        oracle: dict[str, Any],
        settings: dict[str, Any],
        total: int,
    ) -> Reply:
        """Begin a search. The arrays hold, per input of the models, what `rules` names."""
        waiting = list(arrays)
        parsed = [_rules(rule, waiting) for rule in rules]
        move = _move(constraint)
        self._search = Search(
            self,
            Oracle(oracle["kind"], oracle["tolerance"], tuple(oracle["edges"])),
            [move] * len(parsed),
            parsed,
            Settings(**settings),
        )
        self._total = total
        return {}, ()

    def search(
        self, arrays: list[Array], seeds: list[str], start: int, stop: int, cycle: int, done: int
    ) -> Reply:
        """Lead the seeds from `start` to `stop` to differences; `keep` says which ones count."""
        assert self._search is not None
        inputs = [np.array(self._context.blobs.get(digest)[start:stop]) for digest in seeds]
        count = stop - start
        began = time.process_time()
        self._context.begin(self._total)
        found = self._search.run(
            inputs,
            np.arange(start, stop),
            cycle,
            lambda share: self._context.reach(done + int(share * count)),
        )
        self._found = found.inputs
        reply = {
            "tried": found.tried,
            "unmoved": found.unmoved,
            "flat": found.flat,
            "first": found.first,
            "cpu": time.process_time() - began,
        }
        return reply, [
            found.index,
            found.iterations,
            found.chosen,
            found.already,
            *found.inputs,
            *found.answers,
            *found.before,
        ]

    def keep(self, arrays: list[Array], rows: list[int]) -> Reply:
        """Cover these of the inputs that the last search has found; the coverage so far."""
        began = time.process_time()
        if rows:
            self.cover([array[rows] for array in self._found])
        return {"cpu": time.process_time() - began}, self._best

    def ask(self, arrays: list[Array]) -> Reply:
        """Each model's answers to the inputs sent along."""
        return {}, self.answers(arrays)

    def steepest(self, arrays: list[Array], inputs: int) -> Reply:
        """Gradients of the weighted answers: the arrays are inputs, then weights per model."""
        feeds, weights = arrays[:inputs], arrays[inputs:]
        parts = [
            self.gradients(
                [a[i : i + self._batch] for a in feeds],
                [w[i : i + self._batch] for w in weights],
                None,
            )[0]
            for i in range(0, len(feeds[0]), self._batch)
        ]
        return {}, [np.concatenate(column) for column in zip(*parts, strict=True)]

    def step(self, arrays: list[Array], inputs: int, fresh: bool) -> Reply:
        """Move all inputs once along the gradient of their weighted outputs.

        The arrays are the inputs as they are now, then the weights; a `fresh` walk starts there.
        """
        assert self._search is not None
        now = arrays[:inputs]
        if fresh:
            self._walk = now, [{} for _ in now]
        seeds, memories = self._walk
        _, gradients = self.steepest(arrays, inputs)
        moved = [
            move(x, gradient, seed, memory, rules)
            for move, rules, x, gradient, seed, memory in zip(
                self._search.moves, self._search.rules, now, gradients, seeds, memories, strict=True
            )
        ]
        return {}, moved

    def measure(
        self,
        arrays: list[Array],
        inputs: list[str] | None,
        profiled: bool,
        section_count: int,
        top: int,
        done: int = 0,
        total: int = 0,
    ) -> Reply:
        """Coverage of a test set, per model: rows that can be merged with those of other sets.

        The arrays are the inputs, unless `inputs` names blobs, then low and high of every neuron
        on the training set where it is `profiled`.
        """
        count = len(self._models[0].model.inputs)
        stored = inputs is not None
        feeds = (
            [self._context.blobs.get(d) for d in inputs] if inputs is not None else arrays[:count]
        )
        profile = arrays[0 if stored else count :]
        merged: list[list[Array]] | None = None
        if total:
            self._context.begin(total)
        for start in range(0, len(feeds[0]), self._batch):
            part = [np.array(a[start : start + self._batch]) for a in feeds]
            rows = []
            for k, seen in enumerate(self._activations(part)):
                low, high = profile[2 * k : 2 * k + 2] if profiled else (None, None)
                rows.append(_rows(seen, start, self._threshold, low, high, section_count, top))
            merged = (
                rows
                if merged is None
                else [_merged(a, b) for a, b in zip(merged, rows, strict=True)]
            )
            if total:
                self._context.reach(done + min(start + self._batch, len(feeds[0])))
        assert merged is not None
        return {"rows": len(merged[0])}, [array for rows in merged for array in rows]

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


def _rules(rule: dict[str, Any], waiting: list[Array]) -> Rules:
    """Scalars stand in the rule; arrays come with the request, in the order of their names."""
    arrays = {name: waiting.pop(0) for name in rule["arrays"]}
    rectangle = tuple(rule["rectangle"]) if rule["rectangle"] else None
    return Rules(step=float(rule["step"]), rectangle=rectangle, **arrays)


def _move(constraint: str) -> Move:
    if not constraint.endswith(".py"):
        return built_in(constraint)
    from outvote.worker.scripts import run_script

    move = run_script(Path(constraint), "constraint file", "__constraint__").get("move")
    if not callable(move):
        raise Refused(
            f"the constraint file {constraint} defines no function `move(x, gradient, seed, "
            "memory, rules)`; see docs/explore.md"
        )
    return _checked(move, constraint)


def _checked(move: Any, path: str) -> Move:
    """A user's constraint must give inputs of the same shape, and stay in range."""

    def checked(x: Array, gradient: Array, seed: Array, memory: Any, rules: Rules) -> Array:
        try:
            moved = np.asarray(move(x, gradient, seed, memory, rules), x.dtype)
        except Exception as error:
            kind = type(error).__name__
            raise Refused(f"the constraint file {path} failed with {kind}: {error}") from error
        if moved.shape != x.shape:
            raise Refused(
                f"the constraint file {path} made inputs of shape {moved.shape} from {x.shape}; "
                "return as many as you are given"
            )
        return rules.clip(moved)

    return checked


def _rows(
    seen: Activations,
    start: int,
    threshold: float,
    low: Array | None,
    high: Array | None,
    section_count: int,
    top: int,
) -> list[Array]:
    """What is kept of a batch, one row per neuron: maxima first, then minima, then hits."""
    scaled = np.nan_to_num(seen.scaled())
    over = scaled > threshold
    first = np.where(over.any(axis=0), over.argmax(axis=0) + start, np.iinfo(np.int64).max)
    rows = [scaled.max(axis=0), seen.neurons.max(axis=0), seen.neurons.min(axis=0), first]
    rows.append(seen.top(top))
    if low is not None and high is not None:
        rows.append(sections(seen.neurons, low, high, section_count))
    return rows


def _merged(a: list[Array], b: list[Array]) -> list[Array]:
    combine = (np.maximum, np.maximum, np.minimum, np.minimum, np.logical_or, np.logical_or)
    return [f(x, y) for f, x, y in zip(combine, a, b, strict=False)]
