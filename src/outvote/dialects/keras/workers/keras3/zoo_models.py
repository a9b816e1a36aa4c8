"""The architectures of the zoo: one short function per family, from an input to its features.

LEMON (table 2) and AUDEE (table 2) give numbers of layers and weights; ours are built to match
them where the papers say enough. The ImageNet architectures are those of keras.applications.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import layers

from outvote.core.zoo_protocol import ModelPlan

Tensor = Any
Family = Callable[..., Tensor]


def make(plan: ModelPlan) -> Any:
    """The model, with weights yet to be set; `vocabulary` above 0 means that inputs are tokens."""
    if hasattr(keras.applications, plan.family):
        architecture = getattr(keras.applications, plan.family)
        return architecture(weights=None, input_shape=plan.shape, classes=plan.outputs)
    tokens = plan.vocabulary > 0
    x = keras.Input(plan.shape, dtype="int32" if tokens else "float32", name="input")
    family = FAMILIES[plan.family]
    features = _tokens(x, family, plan.vocabulary) if tokens else family(x)
    activation = "softmax" if plan.classifier else None
    answer = layers.Dense(plan.outputs, activation=activation, name="answer")(features)
    return keras.Model(x, answer, name=plan.name.replace("-", "_"))


def lenet5(x: Tensor) -> Tensor:
    """LeCun et al. 1998 with ReLU and maximum; activations are layers, as LEMON counts them."""
    for i, (filters, padding) in enumerate([(6, "same"), (16, "valid")], 1):
        x = layers.Conv2D(filters, 5, padding=padding, name=f"conv{i}")(x)
        x = layers.Activation("relu", name=f"conv{i}_relu")(x)
        x = layers.MaxPooling2D(2, name=f"pool{i}")(x)
    x = layers.Flatten(name="flatten")(x)
    for i, units in enumerate([120, 84], 1):
        x = layers.Dense(units, name=f"dense{i}")(x)
        x = layers.Activation("relu", name=f"dense{i}_relu")(x)
    return x


def lenet5_wide(x: Tensor) -> Tensor:
    """LEMON's second LeNet: small kernels, a wide dense layer, dropout."""
    for i, filters in enumerate([64, 32], 1):
        x = layers.Conv2D(filters, 2, padding="same", activation="relu", name=f"conv{i}")(x)
        x = layers.MaxPooling2D(2, name=f"pool{i}")(x)
        x = layers.Dropout(0.3, name=f"drop{i}")(x)
    x = layers.Flatten(name="flatten")(x)
    x = layers.Dense(256, activation="relu", name="dense")(x)
    return layers.Dropout(0.5, name="drop3")(x)


def alexnet(x: Tensor) -> Tensor:
    """Krizhevsky et al. 2012 for small images; batch normalisation for their local response."""
    for i, (filters, kernel) in enumerate([(64, 5), (128, 5)], 1):
        x = layers.Conv2D(filters, kernel, padding="same", activation="relu", name=f"conv{i}")(x)
        x = layers.BatchNormalization(name=f"norm{i}")(x)
        x = layers.MaxPooling2D(3, 2, padding="same", name=f"pool{i}")(x)
    for i, filters in enumerate([192, 192, 128], 3):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu", name=f"conv{i}")(x)
    x = layers.MaxPooling2D(3, 2, name="pool3")(x)
    x = layers.Flatten(name="flatten")(x)
    for i in (1, 2):
        x = layers.Dense(192, activation="relu", name=f"dense{i}")(x)
        x = layers.Dropout(0.5, name=f"drop{i}")(x)
    return x


def resnet20(x: Tensor) -> Tensor:
    """He et al. 2016, section 4.2: three stages of three blocks for small images."""
    x = _normed(x, 16, 1, "stem")
    x = layers.ReLU(name="stem_relu")(x)
    for stage, filters in enumerate([16, 32, 64], 1):
        for block in (1, 2, 3):
            name = f"stage{stage}_block{block}"
            strides = 2 if stage > 1 and block == 1 else 1
            y = layers.ReLU(name=f"{name}_relu1")(_normed(x, filters, strides, f"{name}_a"))
            y = _normed(y, filters, 1, f"{name}_b")
            if strides > 1:
                x = layers.Conv2D(filters, 1, 2, padding="same", name=f"{name}_shortcut")(x)
            x = layers.ReLU(name=f"{name}_relu2")(layers.Add(name=f"{name}_add")([x, y]))
    x = layers.AveragePooling2D(x.shape[1], name="pool")(x)
    return layers.Flatten(name="flatten")(x)


def _normed(x: Tensor, filters: int, strides: int, name: str) -> Tensor:
    x = layers.Conv2D(filters, 3, strides, padding="same", name=f"{name}_conv")(x)
    return layers.BatchNormalization(name=f"{name}_norm")(x)


def vgg16_small(x: Tensor) -> Tensor:
    """Simonyan and Zisserman 2015, configuration D, with normalisation, for small images."""
    for block, filters in enumerate([[64] * 2, [128] * 2, [256] * 3, [512] * 3, [512] * 3], 1):
        for i, count in enumerate(filters, 1):
            name = f"block{block}_conv{i}"
            x = layers.Conv2D(count, 3, padding="same", name=name)(x)
            x = layers.ReLU(name=f"{name}_relu")(x)
            x = layers.BatchNormalization(name=f"{name}_norm")(x)
            if i < len(filters):
                x = layers.Dropout(0.3, name=f"{name}_drop")(x)
        x = layers.MaxPooling2D(2, name=f"block{block}_pool")(x)
    x = layers.Flatten(name="flatten")(x)
    return layers.Dense(512, activation="relu", name="dense")(x)


def residual_mlp(x: Tensor) -> Tensor:
    """Dense layers with skips and a branch: a graph that is no chain, in a few thousand weights."""
    x = layers.Dense(48, name="stem")(layers.Flatten(name="flatten")(x))
    for i in (1, 2, 3):
        y = layers.LayerNormalization(name=f"block{i}_norm")(x)
        y = layers.Dense(48, activation="gelu", name=f"block{i}_dense1")(y)
        y = layers.Dense(48, name=f"block{i}_dense2")(y)
        x = layers.Add(name=f"block{i}_add")([x, y])
    gate = layers.Dense(48, activation="sigmoid", name="gate")(x)
    return layers.Concatenate(name="both")([layers.Multiply(name="gated")([x, gate]), x])


def tiny(x: Tensor) -> Tensor:
    """Next to nothing: places of one shape where a campaign can try layers."""
    x = layers.Activation("tanh", name="tanh")(layers.Activation("linear", name="start")(x))
    return layers.Flatten(name="flatten")(x)


def lstm_two(x: Tensor) -> Tensor:
    """LEMON's LSTM-1: two recurrent layers."""
    x = layers.LSTM(50, return_sequences=True, name="lstm1")(x)
    x = layers.Dropout(0.2, name="drop1")(x)
    x = layers.LSTM(100, name="lstm2")(x)
    return layers.Dropout(0.2, name="drop2")(x)


def lstm_one(x: Tensor) -> Tensor:
    """LEMON's LSTM-2: one recurrent layer."""
    return layers.Dropout(0.2, name="drop")(layers.LSTM(80, name="lstm")(x))


def _tokens(x: Tensor, family: Family, vocabulary: int) -> Tensor:
    return family(layers.Embedding(vocabulary, 32, name="embedding")(x))


def _recurrent(kind: Any) -> Family:
    def family(x: Tensor) -> Tensor:
        return layers.Dropout(0.2, name="drop")(kind(64, name="recurrent")(x))

    return family


def transformer(x: Tensor) -> Tensor:
    """Two encoder blocks (Vaswani et al. 2017); a convolution tells positions apart."""
    x = layers.Conv1D(32, 3, padding="same", name="positions")(x)
    for i in (1, 2):
        y = layers.MultiHeadAttention(4, 8, name=f"block{i}_attention")(x, x)
        y = layers.Add(name=f"block{i}_add1")([x, y])
        x = layers.LayerNormalization(name=f"block{i}_norm1")(y)
        y = layers.Dense(64, activation="gelu", name=f"block{i}_dense1")(x)
        y = layers.Dense(32, name=f"block{i}_dense2")(y)
        y = layers.Add(name=f"block{i}_add2")([x, y])
        x = layers.LayerNormalization(name=f"block{i}_norm2")(y)
    return layers.GlobalAveragePooling1D(name="pool")(x)


FAMILIES: dict[str, Family] = {
    **{f.__name__: f for f in (lenet5, lenet5_wide, alexnet, resnet20, vgg16_small)},
    **{f.__name__: f for f in (residual_mlp, tiny, lstm_two, lstm_one, transformer)},
    "simple_rnn": _recurrent(layers.SimpleRNN),
    "lstm": _recurrent(layers.LSTM),
    "gru": _recurrent(layers.GRU),
}
