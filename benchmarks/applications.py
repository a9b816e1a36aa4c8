"""Architectures of keras.applications with random weights, as files for other benchmarks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

NAMES = [  # the 13 of CRADLE
    *("Xception", "VGG16", "VGG19", "ResNet50", "InceptionV3", "InceptionResNetV2"),
    *("MobileNet", "MobileNetV2", "DenseNet121", "DenseNet169", "DenseNet201"),
    *("NASNetMobile", "NASNetLarge"),
]
# A small one of each family that came later.
LATER = ["ResNet50V2", "MobileNetV3Small", "EfficientNetB0", "EfficientNetV2B0", "ConvNeXtTiny"]

_BUILD = """
import sys
import keras, numpy as np
name, size, spread, path = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
original = keras.layers.Layer.add_weight
def zeros(self, shape=None, initializer=None, *a, **k):
    return original(self, shape, "zeros", *a, **k)
keras.layers.Layer.add_weight = zeros
model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3))
rng = np.random.default_rng(0)
def value(v):
    shape = v.shape
    if v.name in ("gamma", "moving_variance", "variance"):
        return rng.uniform(0.8, 1.2, shape)
    if v.name in ("beta", "moving_mean", "bias"):
        return rng.normal(0, 0.1, shape)
    if "depthwise" in v.name:
        return rng.normal(0, (2 / np.prod(shape[:2])) ** 0.5, shape)
    return rng.normal(0, (2 / np.prod(shape[:-1])) ** 0.5, shape)
for v in model.weights:
    v.assign(value(v).astype("float32"))
x, fresh = rng.normal(size=(2, 12, size, size, 3)).astype("float32")
norms = [layer for layer in model.layers if hasattr(layer, "moving_mean")]
for layer in norms:  # statistics as training would leave them: the signal reaches the end
    layer.momentum = 0.0
model(x, training=True)
for layer in norms:  # few samples make some channels look constant, which they are not
    variance = keras.ops.convert_to_numpy(layer.moving_variance)
    layer.moving_variance.assign((variance + variance.mean()) / 2)
    layer.momentum = 0.99
last = [layer for layer in model.layers if hasattr(layer, "kernel")][-1]
features = keras.Model(model.inputs, last.input)
kernel = keras.ops.convert_to_numpy(last.kernel)
logits = features.predict(fresh, verbose=0) @ kernel.reshape(-1, kernel.shape[-1])
last.kernel.assign(last.kernel * (spread / logits.std()))
model.save(path)
"""


def build(name: str, folder: Path, size: int = 96, logit_spread: float = 3.0) -> Path:
    """Save one architecture (once), scaled so that its logits spread like a trained model's."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{size}-{logit_spread:g}.keras"
    if not path.exists():
        env = {**os.environ, "KERAS_BACKEND": "tensorflow", "OMP_NUM_THREADS": "1"}
        part = path.with_name(f"part-{path.name}")
        command = [sys.executable, "-c", _BUILD, name, str(size), str(logit_spread), str(part)]
        subprocess.run(command, env=env, check=True, capture_output=True)
        part.rename(path)
    return path
