"""The planted faults of benchmarks/gradient_faults.py: where each is, and what must be said of it.

A fault is a setup script in benchmarks/gradient_faults/ for one backend. It changes nothing about
what a model gives: only its gradients, statistics, updates or steps. `model` is Python that builds
the smallest case that shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).parent / "gradient_faults"


@dataclass(frozen=True)
class GradientFault:
    """One planted fault, in the form of ground_truth_faults.py; its stage must be named."""

    name: str  # of the script
    target: str  # the built-in target that is patched
    stage: str
    layer: str  # its kind; "" where the stage has none
    model: str
    loss: str = ""
    optimizer: str = "adam"
    settings: Mapping[str, Any] | None = None  # of the optimiser
    data: str = ""
    count: int = 8

    @property
    def script(self) -> Path:
        return SCRIPTS / f"{self.name}.py"


def _chain(shape: str, guilty: str) -> str:
    """The guilty layer behind one that keeps the shape, and a Dense layer at the end."""
    first = "layers.Activation('tanh', name='before')"
    end = "layers.Flatten(), layers.Dense(5)"
    return f"keras.Sequential([keras.Input({shape}), {first}, {guilty}, {end}])"


_PLAIN = (
    "keras.Sequential([keras.Input((6,)), layers.Dense(4, activation='tanh'), layers.Dense(3)])"
)
_IMAGE, _LINE = "(6, 6, 4)", "(5, 4)"
_TWO = (
    "(lambda x: keras.Model(x, layers.Dense(3)({join}([layers.Dense(4)(x), "
    "layers.Dense(4, activation='tanh')(x)]))))(keras.Input((6,)))"
)
_MASKED = (
    "keras.Sequential([keras.Input((5, 4)), layers.Masking(), layers.GlobalAveragePooling1D(), "
    "layers.Dense(3)])"
)
_ATTENTION = (
    "(lambda x: keras.Model(x, layers.Dense(3)(layers.Flatten()(layers.Attention()("
    "[layers.Dense(4)(x), layers.Dense(4)(x)])))))(keras.Input((5, 4)))"
)
_ADAMW = {"learning_rate": 0.1, "weight_decay": 0.05}

FAULTS: tuple[GradientFault, ...] = (
    GradientFault("relu_factor", "torch", "gradient", "ReLU", _chain(_LINE, "layers.ReLU()")),
    GradientFault(
        "softmax_axis", "jax", "gradient", "Softmax", _chain("(4, 4)", "layers.Softmax()")
    ),
    GradientFault(
        "add_detached", "tensorflow", "gradient", "Add", _TWO.format(join="layers.Add()")
    ),
    GradientFault(
        "layer_norm_detached", "torch", "gradient", "LayerNormalization",
        _chain(_LINE, "layers.LayerNormalization()"),
    ),
    GradientFault(
        "batch_norm_unbiased", "jax", "statistics", "BatchNormalization",
        _chain("(6,)", "layers.BatchNormalization()"),
    ),
    GradientFault(
        "batch_norm_momentum", "tensorflow", "statistics", "BatchNormalization",
        _chain("(6,)", "layers.BatchNormalization()"),
    ),
    GradientFault(
        "batch_norm_detached", "torch", "gradient", "BatchNormalization",
        _chain("(6,)", "layers.BatchNormalization()"),
    ),
    GradientFault("adam_epsilon_inside", "jax", "optimiser", "", _PLAIN),
    GradientFault("adam_epsilon_torch", "torch", "optimiser", "", _PLAIN),
    GradientFault("decay_without_rate", "jax", "decay", "", _PLAIN, "", "AdamW", _ADAMW),
    GradientFault("decay_after", "jax", "decay", "", _PLAIN, "", "AdamW", _ADAMW),
    GradientFault("clip_sum", "torch", "clipping", "", _PLAIN, "", "SGD", {"clipnorm": 0.01}),
    GradientFault(
        "clip_one_side", "tensorflow", "clipping", "", _PLAIN, "", "SGD", {"clipvalue": 0.01}
    ),
    GradientFault(
        "average_swapped", "jax", "averaging", "", _PLAIN, "", "SGD",
        {"learning_rate": 0.1, "use_ema": True},
    ),
    GradientFault(
        "scale_kept", "tensorflow", "loss scaling", "", _PLAIN, "", "SGD",
        {"learning_rate": 0.1, "loss_scale_factor": 8.0},
    ),
    GradientFault(
        "nesterov_ignored", "jax", "optimiser", "", _PLAIN, "", "SGD",
        {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True},
    ),
    GradientFault("rmsprop_swapped", "tensorflow", "optimiser", "", _PLAIN, "", "RMSprop"),
    GradientFault(
        "l2_factor", "torch", "regulariser", "Dense",
        _chain("(6,)", "layers.Dense(4, kernel_regularizer='l2')"),
    ),
    GradientFault("mse_factor", "jax", "loss", "", _PLAIN, "MeanSquaredError"),
    GradientFault(
        "crossentropy_detached", "tensorflow", "loss", "", _PLAIN, "SparseCategoricalCrossentropy"
    ),
    GradientFault("huber_sign", "torch", "loss", "", _PLAIN, "Huber"),
    GradientFault("gradients_kept", "torch", "steps", "", _PLAIN),
    GradientFault("bias_mean", "jax", "gradient", "Dense", _chain("(6,)", "layers.Dense(4)")),
    GradientFault(
        "mask_forward_only", "tensorflow", "gradient", "GlobalAveragePooling1D", _MASKED,
        data="rng.normal(size=(count, 5, 4)) * (np.arange(5) < 3)[:, None]",
    ),
    GradientFault(
        "rnn_detached", "torch", "gradient", "SimpleRNN", _chain(_LINE, "layers.SimpleRNN(3)")
    ),
    GradientFault("masked_nan", "tensorflow", "gradient", "ELU", _chain(_LINE, "layers.ELU()")),
    GradientFault(
        "max_pool_spread", "torch", "gradient", "MaxPooling2D",
        _chain(_IMAGE, "layers.MaxPooling2D()"),
    ),
    GradientFault(
        "conv_flipped", "jax", "gradient", "Conv2D", _chain(_IMAGE, "layers.Conv2D(3, 3)")
    ),
    GradientFault(
        "upsampling_mean", "tensorflow", "gradient", "UpSampling2D",
        _chain(_IMAGE, "layers.UpSampling2D()"),
    ),
    GradientFault(
        "concatenate_swapped", "torch", "gradient", "Concatenate",
        _TWO.format(join="layers.Concatenate()"),
    ),
    GradientFault(
        "gelu_approximate", "tensorflow", "gradient", "Activation",
        _chain(_LINE, "layers.Activation('gelu')"),
    ),
    GradientFault("prelu_detached", "jax", "gradient", "PReLU", _chain(_LINE, "layers.PReLU()")),
    GradientFault("attention_unscaled", "torch", "gradient", "Attention", _ATTENTION),
    GradientFault(
        "pooled_sum", "jax", "gradient", "GlobalAveragePooling2D",
        _chain(_IMAGE, "layers.GlobalAveragePooling2D()"),
    ),
)  # fmt: skip
