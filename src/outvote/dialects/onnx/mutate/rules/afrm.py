"""Activation function removal: a node that is an activation goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Layer
from outvote.dialects.onnx.mutate.activations import activations_of
from outvote.dialects.onnx.mutate.tools import OnnxTools
from outvote.mutate.subject import Subject

NAME, GROUP = "AFRm", "lemon"
TITLE = "activation function removal"


def sites(subject: Subject, tools: OnnxTools) -> Sequence[Layer]:
    return activations_of(subject) if len(subject.model.layers) > 1 else []


def apply(subject: Subject, site: Layer, tools: OnnxTools, rng: np.random.Generator) -> Subject:
    return subject.without(site)
