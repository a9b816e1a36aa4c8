"""Ways to make a node smaller or plainer; between them stand those of any graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from outvote.core.specimen import Specimen
from outvote.dialects.onnx.layers import parameters
from outvote.dialects.onnx.nouns.attributes import illegal
from outvote.triage.operators import equal_sizes, few_layers, fewer_attributes, smaller
from outvote.triage.reductions import (
    Builder,
    Reduction,
    fewer_inputs,
    fewer_layers,
    fewer_outputs,
    plain_numbers,
    smaller_shapes,
)


def smaller_attributes(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """Whole numbers among the attributes as small as possible, lists of them evenly."""
    for layer in few_layers(specimen):
        for key, value in parameters(layer).items():
            for least in smaller(value):
                if least in illegal(layer.kind, key, value):
                    continue
                yield specimen.with_layer(replace(layer, config={**layer.config, key: least}))


REDUCTIONS: Sequence[Reduction] = (
    fewer_outputs,
    fewer_layers,
    fewer_inputs,
    fewer_attributes,
    equal_sizes,
    smaller_shapes,
    smaller_attributes,
    plain_numbers,
)
