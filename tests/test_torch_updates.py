"""Our formulas of PyTorch's optimisers, held against PyTorch in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from outvote.core.exercises import Update
from outvote.dialects.torch_export.updates import FORMULAS, exact_update

pytestmark = pytest.mark.frameworks

RNG = np.random.default_rng(0)
WEIGHTS = (RNG.normal(size=(2, 3)), RNG.normal(size=4))
GRADIENTS = tuple(tuple(RNG.normal(size=w.shape) for w in WEIGHTS) for _ in range(4))
CASES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in FORMULAS),
    *((name, {"lr": 0.1, "weight_decay": 0.3}) for name in FORMULAS),
    *((name, {"maximize": True}) for name in FORMULAS),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adam", {"betas": [0.5, 0.7], "eps": 0.01, "amsgrad": True}),
    ("RMSprop", {"momentum": 0.5, "centered": True, "alpha": 0.7, "eps": 0.01}),
    ("Adagrad", {"lr_decay": 0.5, "initial_accumulator_value": 0.3}),
]


@pytest.mark.parametrize(("name", "config"), CASES)
def test_a_formula_gives_what_pytorch_gives(name: str, config: dict[str, Any]) -> None:
    formula = exact_update(Update({"class_name": name, "config": config}, WEIGHTS, GRADIENTS))
    assert formula is not None
    tensors = [torch.tensor(w, requires_grad=True) for w in WEIGHTS]
    told = {key: tuple(v) if isinstance(v, list) else v for key, v in config.items()}
    optimizer = getattr(torch.optim, name)(tensors, **told)
    after = []
    for gradients in GRADIENTS:
        for tensor, gradient in zip(tensors, gradients, strict=True):
            tensor.grad = torch.tensor(gradient)
        optimizer.step()
        after += [tensor.detach().numpy().copy() for tensor in tensors]
    for ours, theirs in zip(formula, after, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


def test_what_no_formula_reads_is_not_covered() -> None:
    for told in ({"class_name": "Rprop"}, {"class_name": "SGD", "config": {"fused": True}}):
        assert exact_update(Update(told, WEIGHTS, GRADIENTS)) is None
