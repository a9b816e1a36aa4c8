"""Which kinds of layers can be drawn, where they fit, and with which parameters.

The kinds and their parameters come from the installed Keras by introspection. What introspection
cannot tell stands here: ranks, numbers of inputs, and which kinds are left out, and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outvote.core.protocol import KindsListed
from outvote.dialects.keras.mutate.arguments import drawable
from outvote.dialects.keras.mutate.parameters import PARAMETERS, Parameter, parameter
from outvote.dialects.keras.mutate.values import FIRST, LEFT_ALONE, Draw

_ANY = (1, 2, 3, 4)
_SEQUENCE = (2,)
_IMAGE = (3,)
# Augmentations that leave nothing to chance where a factor is drawn from one number to the same.
WITHOUT_CHANCE = (
    *("RandomBrightness", "RandomColorDegeneration", "RandomGaussianBlur"),
    *("RandomGrayscale", "RandomInvert", "RandomPosterization", "RandomRotation"),
    *("RandomSaturation", "RandomSharpness", "RandomTranslation", "RandomZoom"),
)
# Ranks of one instance; kinds with 1D, 2D or 3D in their name take that many axes and the channels.
_RANKS: Mapping[str, tuple[int, ...]] = {
    "LSTM": _SEQUENCE,
    "GRU": _SEQUENCE,
    "SimpleRNN": _SEQUENCE,
    "RNN": _SEQUENCE,
    "Bidirectional": _SEQUENCE,
    "TimeDistributed": (2, 3, 4),
    "Attention": _SEQUENCE,
    "AdditiveAttention": _SEQUENCE,
    "MultiHeadAttention": (2, 3),
    "GroupedQueryAttention": _SEQUENCE,
    "ConvLSTM1D": (3,),
    "ConvLSTM2D": (4,),
    "ConvLSTM3D": (5,),
    "Dot": (1, 2, 3),
    "Embedding": (1, 2),
    "ReversibleEmbedding": (1,),
    "RepeatVector": (1,),
    "Masking": _SEQUENCE,
    "AutoContrast": _IMAGE,
    "CenterCrop": _IMAGE,
    "ContrastLimitedAdaptiveHistogramEqualization": _IMAGE,
    "Equalization": _IMAGE,
    "RandomCrop": _IMAGE,
    "Resizing": _IMAGE,
    "Solarization": _IMAGE,
    "MelSpectrogram": (1,),
    "STFTSpectrogram": (1, 2),
    "Hashing": (1, 2),
    "HashedCrossing": (1,),
    **dict.fromkeys(WITHOUT_CHANCE, _IMAGE),
    "IntegerLookup": (1, 2),
    "CategoryEncoding": (1,),
    "SpectralNormalization": (1, 2, 3),
    "Permute": (2, 3, 4),
}
_TWO_IN_A_LIST = (
    "Add Average Concatenate Dot Maximum Minimum Multiply Subtract Attention AdditiveAttention "
    "HashedCrossing"
).split()
_TWO_ARGUMENTS = ("MultiHeadAttention", "GroupedQueryAttention")
_WHOLE_NUMBERS = (
    "Embedding ReversibleEmbedding Hashing HashedCrossing IntegerLookup CategoryEncoding"
).split()
_AUGMENTS = "passes its input on, except in training, where chance decides"
NOT_DRAWN: Mapping[str, str] = {
    **dict.fromkeys(
        ("Layer", "Wrapper", "InputLayer", "Pipeline"), "has no computation of its own"
    ),
    **dict.fromkeys(("Lambda", "FlaxLayer", "JaxLayer", "TorchModuleWrapper"), "runs given code"),
    "TFSMLayer": "reads a file",
    **dict.fromkeys(("StringLookup", "TextVectorization"), "reads strings"),
    "MaxNumBoundingBoxes": "reads bounding boxes",
    **dict.fromkeys(("AugMix", "CutMix", "MixUp", "RandAugment"), _AUGMENTS),
    **dict.fromkeys(
        ("LSTMCell", "GRUCell", "SimpleRNNCell", "StackedRNNCells"), "drawn inside RNN"
    ),
}


@dataclass(frozen=True)
class Kind:
    """A kind of layer that can be drawn."""

    name: str
    parameters: tuple[str, ...]
    required: frozenset[str]
    ranks: tuple[int, ...]
    arity: int
    joined: bool
    whole_numbers: bool
    arguments: tuple[str, ...] = ()  # of its call, that can be drawn

    def draw(
        self,
        place: Sequence[int | None],
        rng: np.random.Generator,
        activations: Sequence[str],
        keep: bool,
        share: float = 0.5,
    ) -> dict[str, Any]:
        """Parameters for this place; about that share of them are drawn, not left at default."""
        draw = Draw(self.name, tuple(place), rng, activations, keep)
        for name in sorted(self.parameters, key=drawing_order):
            # What decides the output shape is always drawn: its default may not keep it.
            shapes = name in _SHAPES_OUTPUT and keep
            if name in self.required or shapes or draw.chance(share):
                draw.drawn[name] = _row(self.name, name).draw(draw)
        return draw.drawn


_SHAPES_OUTPUT = (
    "padding strides return_sequences size merge_mode cropping depth_multiplier".split()
)


def _row(kind: str, name: str) -> Parameter:
    found = parameter(kind, name)
    assert found is not None, f"{kind} has no row for {name}"
    return found


def drawing_order(name: str) -> int:
    """Those that others depend on come first."""
    return FIRST.index(name) if name in FIRST else len(FIRST)


@dataclass(frozen=True)
class Catalogue:
    """The kinds of one Keras, and those it has that are not drawn, each with the reason."""

    kinds: Mapping[str, Kind]
    activations: tuple[str, ...]
    not_covered: Mapping[str, str]

    @staticmethod
    def of(found: KindsListed) -> Catalogue:
        """From a worker's answer."""
        kinds, missing = {}, {}
        for name, parameters in found.kinds.items():
            reason = _why_not(name, parameters)
            if reason:
                missing[name] = reason
            else:
                kinds[name] = _kind(name, parameters, found.arguments.get(name, ()))
        return Catalogue(kinds, tuple(found.activations), missing)

    def fitting(self, rank: int) -> list[Kind]:
        """Kinds for float tensors of that rank that do something at inference."""
        some = (k for k in self.kinds.values() if k.name not in WITHOUT_CHANCE)
        return [k for k in some if rank in k.ranks and not k.whole_numbers]


def _why_not(name: str, parameters: Sequence[Mapping[str, Any]]) -> str | None:
    if name in NOT_DRAWN:
        return NOT_DRAWN[name]
    if name.startswith("Random") and name not in ("RandomCrop", *WITHOUT_CHANCE):
        return _AUGMENTS  # RandomCrop crops, or resizes, always
    unknown = [p["name"] for p in parameters if p["required"] and p["name"] not in PARAMETERS]
    return f"no values are known for its parameter {unknown[0]}" if unknown else None


def _kind(name: str, parameters: Sequence[Mapping[str, Any]], arguments: Sequence[str]) -> Kind:
    return Kind(
        name,
        tuple(
            p["name"] for p in parameters if p["name"] in PARAMETERS and p["name"] not in LEFT_ALONE
        ),
        frozenset(p["name"] for p in parameters if p["required"]) | _NEEDED.get(name, frozenset()),
        _RANKS.get(name) or _ranks_by_name(name),
        2 if name in (*_TWO_IN_A_LIST, *_TWO_ARGUMENTS) else 1,
        name in _TWO_IN_A_LIST,
        name in _WHOLE_NUMBERS,
        drawable(arguments, [p["name"] for p in parameters], name in WITHOUT_CHANCE),
    )


# Parameters with a default that does not work on its own.
_NEEDED: Mapping[str, frozenset[str]] = {
    "Discretization": frozenset({"bin_boundaries"}),
    "Normalization": frozenset({"mean", "variance", "axis"}),
    "CategoryEncoding": frozenset({"num_tokens", "output_mode"}),
    "IntegerLookup": frozenset({"vocabulary"}),
    "GroupNormalization": frozenset({"axis", "groups"}),
    "MelSpectrogram": frozenset(
        {"fft_length", "sequence_stride", "num_mel_bins", "sampling_rate", "min_freq"}
    ),
    "STFTSpectrogram": frozenset({"frame_length", "mode"}),
    "ContrastLimitedAdaptiveHistogramEqualization": frozenset({"tile_grid_size"}),
}


def _ranks_by_name(name: str) -> tuple[int, ...]:
    for axes in (1, 2, 3):
        if f"{axes}D" in name:
            return (axes + 1,)
    return _ANY
