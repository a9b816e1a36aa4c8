"""Programs of the zoo, built and exported."""

from __future__ import annotations

import torch

from outvote.dialects.torch_export.nouns.requests import BuildProgram, ProgramBuilt
from outvote.dialects.torch_export.workers.shared.read import read
from outvote.dialects.torch_export.workers.zoo.models import MODELS
from outvote.worker.main import Context, Refused


def build_program(context: Context, request: BuildProgram) -> ProgramBuilt:
    """The archive of a module, its first dimension free, and inputs that fit."""
    try:
        module, inputs = MODELS[request.name](request.seed)
    except ImportError as error:
        raise Refused(f"{request.name} learns from scikit-learn's digits: {error}") from error
    given = tuple(torch.from_numpy(array) for array in inputs)
    free = tuple({0: torch.export.Dim.AUTO} for _ in given)
    path = context.folder / "model.pt2"
    torch.export.save(torch.export.export(module.eval(), given, dynamic_shapes=free), path)
    layers = len(read(path, context.blobs).model.layers)
    return ProgramBuilt(
        file=context.taken(path),
        inputs=tuple(context.blobs.put(array) for array in inputs),
        layers=layers,
        weights=sum(weight.numel() for weight in module.parameters()),
    )
