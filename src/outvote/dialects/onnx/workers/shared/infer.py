"""What ONNX' checker and shape inference say of a neutral model."""

from __future__ import annotations

import onnx

from outvote.core.blobs import BlobStore
from outvote.core.model import Model
from outvote.dialects.onnx.nouns.requests import FormsInferred
from outvote.dialects.onnx.workers.shared.assemble import assemble
from outvote.dialects.onnx.workers.shared.read import read
from outvote.worker.main import Refused


def infer_forms(model: Model, blobs: BlobStore) -> FormsInferred:
    """The forms of what every node gives; a model that ONNX refuses is refused."""
    proto = assemble(model, blobs).proto
    try:
        inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
        for value in inferred.graph.output:
            value.type.tensor_type.SetInParent()
        onnx.checker.check_model(inferred)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise Refused(str(error)) from error
    found = read("a model", proto.SerializeToString(), blobs, {}, {})
    batch = {layer.name: layer.batch for layer in found.model.layers}
    return FormsInferred(specs=found.specs, batch=batch)
