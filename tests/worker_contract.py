"""What every worker owes the driver, whatever it computes with: a contract to inherit.

`tests/test_worker_contract.py` applies it to the fake, to a toy dialect, and to every target of
every dialect. A new worker is held to it as soon as its target is built in. The model is the
dialect's own `probe`, so that the contract knows no layer by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from outvote.core.arrays import Array
from outvote.core.dialect import dialect
from outvote.core.instances import count_of
from outvote.core.model import Model
from outvote.core.outputs import Outputs
from outvote.core.protocol import (
    PROTOCOL,
    CallLayer,
    CloseSession,
    File,
    ListKinds,
    OpenSession,
    Read,
    Request,
    RunModel,
    Save,
    StepLayer,
    WatchRanges,
)
from outvote.core.states import State
from outvote.core.target import CAPABILITIES, COSTS, Outcome, Run, Target
from outvote.judge.compare import distance
from outvote.run.pool import Pool


@dataclass(frozen=True)
class Worker:
    """One target of a pool, with the model that its dialect tries targets with."""

    pool: Pool
    name: str

    @property
    def target(self) -> Target:
        return self.pool.targets[self.name]

    @property
    def probe(self) -> tuple[Model, list[Array], Array]:
        return dialect(self.target.dialect).targets.probe()

    @property
    def given(self) -> tuple[State, ...]:
        model, inputs, _ = self.probe
        return tuple(State.fed(a, item) for a, item in zip(inputs, model.inputs, strict=True))

    def ask(self, request: Request[Any]) -> Run[Any]:
        return self.pool.ask(self.name, request)

    def request(self, inputs: Sequence[Array] | None = None, **more: Any) -> RunModel:
        """The probe on its own inputs, or on others of the same form."""
        model, own, _ = self.probe
        arrays = own if inputs is None else inputs
        batch = count_of(arrays, [item.batch for item in model.inputs])
        blobs = tuple(self.pool.blobs.put(np.ascontiguousarray(array)) for array in arrays)
        steps = len(model.layers)
        return replace(RunModel(model=model, inputs=blobs, batch=batch, steps=steps), **more)

    def outputs(self, inputs: Sequence[Array] | None = None, **more: Any) -> Outputs:
        run = self.ask(self.request(inputs, **more))
        assert run.ok, run.message
        found: Outputs = run.reply.outputs
        return found

    def repeated(self, times: int) -> tuple[list[Array], Array]:
        """The probe's inputs with so many instances, and the answer; without a batch, one."""
        model, inputs, answer = self.probe
        pairs = list(zip(inputs, model.inputs, strict=True))
        arrays = [a if i.batch is None else np.repeat(a[:1], times, axis=i.batch) for a, i in pairs]
        has_batch = any(item.batch is not None for item in model.inputs)
        return arrays, np.repeat(answer[:1], times, axis=0) if has_batch else answer


def requests_of(worker: Worker) -> dict[str, Request[Any]]:
    """A request that needs each capability."""
    model, _, _ = worker.probe
    request = worker.request()
    nonsense = File("nonsense", worker.pool.blobs.put(np.frombuffer(b"no model", np.uint8)))
    return {
        "read": Read(file=nonsense),
        "save": Save(model=model),
        "step": OpenSession(model=model, inputs=worker.given),
        "ranges": WatchRanges(model=model, inputs=request.inputs, wanted=model.outputs[0]),
        "make": ListKinds(),
    }


class WorkerContract:
    """Inherit it, and give a fixture `worker`."""

    def test_it_says_who_it_is(self, worker: Worker) -> None:
        hello = worker.pool.start([worker.name])[worker.name].reply
        assert hello.protocol == PROTOCOL
        assert hello.versions
        assert all(name and version for name, version in hello.versions.items())
        assert hello.python.count(".") == 2

    def test_it_promises_nothing_that_nobody_knows(self, worker: Worker) -> None:
        assert worker.target.capabilities <= CAPABILITIES.keys()
        assert worker.target.costs <= COSTS.keys()

    def test_it_computes_the_probe(self, worker: Worker) -> None:
        _, _, answer = worker.probe
        outputs = worker.outputs()
        np.testing.assert_allclose(outputs.arrays[0], answer, rtol=1e-5)
        assert outputs.dtypes[0] == answer.dtype.name

    def test_the_same_question_has_the_same_answer(self, worker: Worker) -> None:
        first, second = worker.outputs(), worker.outputs()
        for a, b in zip(first.arrays, second.arrays, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_the_batch_changes_no_answer(self, worker: Worker) -> None:
        inputs, expected = worker.repeated(5)
        for batch in (5, 2, 1):
            outputs = worker.outputs(inputs, batch=batch)
            np.testing.assert_allclose(outputs.arrays[0], expected, rtol=1e-5)

    def test_a_batch_of_no_instances_is_survived(self, worker: Worker) -> None:
        """It gives the batch of no results, or says that it cannot; it does not die of it."""
        inputs, expected = worker.repeated(0)
        run = worker.ask(worker.request(inputs, batch=1))
        assert not run.outcome.is_death, run.message
        if run.ok:
            assert run.reply.outputs.arrays[0].shape == expected.shape

    def test_moving_every_tensor_by_its_last_place_moves_the_result_by_little(
        self, worker: Worker
    ) -> None:
        plain, moved = worker.outputs(), worker.outputs(jitter=1)
        assert distance(plain, moved) < 1e-4
        assert distance(moved, worker.outputs(jitter=1)) == 0  # the seed decides

    def test_a_kind_of_layer_that_does_not_exist_is_an_error_with_its_place(
        self, worker: Worker
    ) -> None:
        model, _, _ = worker.probe
        strange = replace(model.layers[-1], kind="NoSuchKind")
        broken = replace(model, layers=(*model.layers[:-1], strange))
        restarts = dict(worker.pool.restarts)
        run = worker.ask(worker.request(model=broken))
        assert run.outcome in (Outcome.ERROR, Outcome.UNSUPPORTED)
        assert "NoSuchKind" in run.message
        self.test_it_computes_the_probe(worker)
        assert worker.pool.restarts == restarts, "it died of a refusal"

    def test_a_blob_that_is_not_there_is_an_error(self, worker: Worker) -> None:
        request = worker.request()
        run = worker.ask(replace(request, inputs=("0" * 64,) * len(request.inputs)))
        assert run.outcome is Outcome.ERROR
        self.test_it_computes_the_probe(worker)

    @pytest.mark.parametrize("capability", ["read", "save", "step", "ranges", "make"])
    def test_what_it_says_it_can_it_tries_and_what_it_cannot_is_a_gap(
        self, worker: Worker, capability: str
    ) -> None:
        request = requests_of(worker)[capability]
        run = worker.ask(request)
        missing = f"cannot {type(request).deed}" in run.message
        assert not run.outcome.is_death, run.message
        assert not (missing and worker.target.can(capability)), run.message
        if missing:
            assert run.outcome is Outcome.UNSUPPORTED
        if capability == "step" and run.ok:
            assert worker.ask(CloseSession()).ok

    def test_a_file_that_is_no_model_is_refused_with_a_sentence(self, worker: Worker) -> None:
        run = worker.ask(requests_of(worker)["read"])
        assert run.outcome in (Outcome.ERROR, Outcome.UNSUPPORTED)
        assert run.message.strip()
        self.test_it_computes_the_probe(worker)

    def test_what_is_saved_is_read_again(self, worker: Worker) -> None:
        if not worker.target.can("save", "read"):
            return  # the test above holds it to saying so
        model, _, answer = worker.probe
        saved = worker.ask(Save(model=model))
        assert saved.ok, saved.message
        again = worker.ask(Read(file=saved.reply.file))
        assert again.ok, again.message
        outputs = worker.outputs(model=again.reply.model)
        np.testing.assert_allclose(outputs.arrays[0], answer, rtol=1e-5)

    def test_layers_are_stepped_through_alone_and_called_again(self, worker: Worker) -> None:
        if not worker.target.can("step"):
            return
        model, _, answer = worker.probe
        assert worker.ask(OpenSession(model=model, inputs=worker.given)).ok
        held = dict(zip([item.name for item in model.inputs], worker.given, strict=True))
        for layer in model.layers:
            reads = tuple(held[ref.producer] for ref in layer.refs())
            run = worker.ask(StepLayer(layer=layer.name, given=reads))
            assert run.ok, run.message
            own, isolated = run.reply.own, run.reply.isolated
            assert own is not None
            assert isolated is not None
            called = worker.ask(CallLayer(layer=layer.name, given=reads))
            assert called.ok, called.message
            for one, other, third in zip(own, isolated, called.reply.outputs, strict=True):
                np.testing.assert_array_equal(one.array, other.array)
                np.testing.assert_array_equal(one.array, third.array)
                assert one.dtype == other.dtype == third.dtype
            held[layer.name] = own[0]
        np.testing.assert_allclose(held[model.outputs[0].producer].array, answer, rtol=1e-5)
        assert worker.ask(CloseSession()).ok

    def test_hidden_layers_are_shown_as_far_as_wanted(self, worker: Worker) -> None:
        if not worker.target.can("watch"):
            return
        model, _, _ = worker.probe
        names = tuple(layer.name for layer in model.layers)
        inputs, expected = worker.repeated(3)
        run = worker.ask(worker.request(inputs, watch=names, rows=2, keep=True))
        assert run.ok, run.message
        assert run.reply.watched.keys() == set(names)
        (last, *_) = run.reply.watched[model.outputs[0].producer]
        np.testing.assert_allclose(last.array, expected[:2], rtol=1e-5)
