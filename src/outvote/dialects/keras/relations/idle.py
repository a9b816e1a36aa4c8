"""Layers that have work to do in training alone."""

from __future__ import annotations

from outvote.bench.relation import Asked, OtherWay
from outvote.core.outputs import Outputs
from outvote.core.states import State

NAME = "idle"
TITLE = "a layer for training must do nothing at inference"

KINDS = frozenset(
    {
        *("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "AlphaDropout"),
        *("GaussianDropout", "GaussianNoise", "ActivityRegularization", "Identity"),
        *("RandomFlip", "RandomRotation", "RandomTranslation", "RandomZoom", "RandomShear"),
        *("RandomContrast", "RandomBrightness", "RandomErasing", "RandomPerspective"),
    }
)


def twin(asked: Asked) -> OtherWay | None:
    """Its input is what must come out, where it is not cast to another type."""
    model, specimen = asked.specimen.model, asked.specimen
    if len(model.layers) > 1 or specimen.last.kind not in KINDS or len(specimen.inputs) > 1:
        return None
    given = Outputs.of([State.fed(specimen.inputs[0], model.inputs[0])])
    if given.dtypes != asked.plain.dtypes:
        return None
    return OtherWay(specimen, lambda plain, twin: (given, twin))
