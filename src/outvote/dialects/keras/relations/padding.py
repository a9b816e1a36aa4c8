"""Steps behind the end that a mask leaves out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from outvote.bench.relation import Asked, OtherWay
from outvote.core.arrays import Array
from outvote.core.model import REF, Layer, Ref, with_refs
from outvote.core.outputs import Outputs
from outvote.core.specimen import Specimen
from outvote.dialects.keras.layers import stale

NAME = "padding"
TITLE = "masked steps behind the end must change nothing"

KINDS = frozenset(
    {
        *("LSTM", "GRU", "SimpleRNN", "Bidirectional", "GlobalAveragePooling1D"),
        *("Attention", "AdditiveAttention", "MultiHeadAttention", "GroupQueryAttention"),
        "GroupedQueryAttention",
    }
)
_MORE = 2  # steps
_OWN = ("mask", "attention_scores")  # a mask that it is given, an output as long as its inputs


def twin(asked: Asked) -> OtherWay | None:
    """Every tensor longer by steps of a number that it does not hold, and masked by that."""
    specimen = asked.specimen
    if len(specimen.model.layers) > 1 or not _takes_padding(specimen.last):
        return None
    if not all(a.ndim == 3 and a.dtype.kind == "f" and a.size for a in specimen.inputs):
        return None
    if not all(np.isfinite(a).all() for a in specimen.inputs):
        return None
    longest = max(a.shape[1] for a in specimen.inputs)
    away = float(np.ceil(max(float(np.abs(a).max()) for a in specimen.inputs))) + 1
    if any(a.dtype.type(away) != away for a in specimen.inputs):  # beyond what the type tells apart
        return None
    padded = specimen.with_inputs([_padded(a, away) for a in specimen.inputs])

    def sides(plain: Outputs, twin: Outputs) -> tuple[Outputs, Outputs]:
        pairs = zip(plain.arrays, twin.arrays, strict=True)
        cut = tuple(t[:, : p.shape[1]] if p.ndim == t.ndim == 3 else t for p, t in pairs)
        return plain, replace(twin, arrays=cut)

    return OtherWay(_masked(padded, away), sides) if longest else None


def _takes_padding(layer: Layer) -> bool:
    """Whether a mask may be given it, and steps stay where they are."""
    config = layer.config
    inner = config.get("layer", {}).get("config", {})  # of a wrapper
    settings = [config, inner]
    if layer.kind not in KINDS or config.get("stateful"):
        return False
    if any(value for name, value in layer.kwargs.items() if name.endswith(_OWN)):
        return False
    if config.get("data_format") == "channels_first":
        return False
    turned = any(s.get("go_backwards") and s.get("return_sequences") for s in settings)
    return not turned and not any(s.get("unroll") or s.get("stateful") for s in settings)


def _padded(array: Array, value: float) -> Array:
    return np.pad(array, [(0, 0), (0, _MORE), (0, 0)], constant_values=value)


def _masked(specimen: Specimen, value: float) -> Specimen:
    """The layer behind a layer that masks each of its tensors."""
    masks: list[Layer] = []
    for item in specimen.model.inputs:
        name = f"mask_of_{item.name}"
        config = {"name": name, "mask_value": value, "dtype": item.dtype}
        origin = {"module": "keras.layers"}
        masks.append(Layer(name, "Masking", config, [{REF: [item.name, 0]}], origin=origin))

    def behind(ref: Ref) -> Ref:
        return Ref(f"mask_of_{ref.producer}", ref.index)

    layer = specimen.last
    args, kwargs = with_refs(layer.args, behind), with_refs(layer.kwargs, behind)
    moved = stale(replace(layer, args=args, kwargs=kwargs))
    return replace(specimen, model=replace(specimen.model, layers=(*masks, moved)))
