"""Writes models of the zoo as ONNX graphs, as PyTorch traces and exports them."""

from __future__ import annotations

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import keras

from outvote.core.zoo_protocol import ExportModel, ModelExported
from outvote.worker.main import Context, Refused

_OPSET = 17  # that all runtimes read
_COUNT = 2  # instances of the example: with one alone, the trace might take the batch for fixed


def export(context: Context, request: ExportModel) -> ModelExported:
    if keras.backend.backend() != "torch":
        raise Refused("models are exported to ONNX by PyTorch: name --target torch")
    import torch

    context.begin(0)
    with TemporaryDirectory(dir=context.folder) as folder:
        path = context.placed(request.file, Path(folder))
        model = keras.saving.load_model(path, compile=False).eval()
        example = tuple(
            torch.zeros((_COUNT, *item.shape[1:]), dtype=getattr(torch, item.dtype))
            for item in model.inputs
        )
        names = [f"x{place}" for place, _ in enumerate(example)]
        made = path.with_suffix(".onnx")
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                model,
                example,
                str(made),
                input_names=names,
                output_names=["y"],
                dynamic_axes={name: {0: "batch"} for name in (*names, "y")},
                opset_version=_OPSET,
                dynamo=False,
            )
        return ModelExported(file=context.taken(made))
