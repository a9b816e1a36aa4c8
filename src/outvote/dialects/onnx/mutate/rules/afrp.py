"""Activation function replacement: another activation, drawn from all there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Layer
from outvote.dialects.onnx.mutate.activations import ACTIVATIONS, activations_of
from outvote.dialects.onnx.mutate.tools import OnnxTools
from outvote.dialects.onnx.nouns.node import opset_of
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Subject

NAME, GROUP = "AFRp", "lemon"
TITLE = "activation function replacement"


def sites(subject: Subject, tools: OnnxTools) -> Sequence[Layer]:
    return activations_of(subject)


def apply(subject: Subject, site: Layer, tools: OnnxTools, rng: np.random.Generator) -> Subject:
    dtype = subject.reads(site)[0].dtype
    found = {kind: tools.operator(kind, opset_of(site)) for kind in ACTIVATIONS}
    others = [
        kind
        for kind, operator in found.items()
        if kind != site.kind and operator is not None and dtype in operator.inputs[0].types
    ]
    if not others:
        raise Impossible(f"no other activation for {dtype}")
    new = others[int(rng.integers(len(others)))]
    return subject.with_object(site, kind=new, config={}, args=[site.args[0]], weights=())
