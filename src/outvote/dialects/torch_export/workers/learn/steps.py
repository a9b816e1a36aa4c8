"""A few steps of training: forward, backward, and the step of an optimiser."""

from __future__ import annotations

from itertools import compress

from outvote.core.states import State
from outvote.core.train_protocol import Leaf, StepsTrained, TrainSteps
from outvote.dialects.torch_export.workers.learn.modes import Mode
from outvote.dialects.torch_export.workers.learn.objective import parameters_of
from outvote.dialects.torch_export.workers.learn.program import (
    Given,
    NumberProgram,
    fed,
    weight_tensors,
)
from outvote.dialects.torch_export.workers.learn.update import optimizer_of
from outvote.dialects.torch_export.workers.shared.tensors import as_state, as_tensor
from outvote.worker.main import Context


def train_steps(context: Context, mode: Mode, request: TrainSteps) -> StepsTrained:
    """Loss and weights of every step; the optimiser is taken as it is."""
    model, blobs = request.model, context.blobs
    parameters = parameters_of(model)
    learned = [item.is_learned for item in parameters]
    weights = weight_tensors(parameters, blobs)
    leaves = [tensor.requires_grad_() for tensor in compress(weights, learned)]
    truth = State(blobs.get(request.truth))
    feeds = fed(model, request.inputs, blobs)
    optimizer = optimizer_of(request.optimizer, leaves) if leaves else None
    program: NumberProgram | None = None
    context.begin(request.rounds)
    losses, after = [], []
    for _ in range(request.rounds):
        given = Given([as_tensor(feed) for feed in feeds], weights, [as_tensor(truth)])
        program = program or NumberProgram(mode, model, given, loss=request.loss)
        came = program.forward(given)
        assert came.value is not None
        losses.append(came.value.item())
        for leaf, gradient in zip(leaves, program.gradients(came, leaves), strict=True):
            leaf.grad = gradient
        if optimizer is not None:
            optimizer.step()
        left = iter(came.kept)
        weights = [
            tensor if is_learned else next(left).detach().clone()
            for tensor, is_learned in zip(weights, learned, strict=True)
        ]
        after.append(
            tuple(
                Leaf(item.layer, item.place, item.name, as_state(tensor, None).array)
                for item, tensor in zip(parameters, weights, strict=True)
            )
        )
        context.step()
    return StepsTrained(losses=tuple(losses), weights=tuple(after))
