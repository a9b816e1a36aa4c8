"""Trains a small convolutional network on scikit-learn's digits, in seconds, for the demo.

    python examples/digits.py FOLDER

writes FOLDER/digits.keras and FOLDER/digits.npz (the test set: x and y).
"""

import importlib.util
import os
import sys
from pathlib import Path

for backend in ("torch", "jax", "tensorflow"):
    if importlib.util.find_spec(backend):
        os.environ.setdefault("KERAS_BACKEND", backend)
        break

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def network() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((8, 8, 1), name="image"),
            layers.Conv2D(16, 3, padding="same", use_bias=False, name="conv1"),
            layers.BatchNormalization(momentum=0.9, name="norm1"),
            layers.ReLU(name="relu1"),
            layers.AveragePooling2D(2, name="pool1"),
            layers.Conv2D(32, 3, padding="same", use_bias=False, name="conv2"),
            layers.BatchNormalization(momentum=0.9, name="norm2"),
            layers.ReLU(name="relu2"),
            layers.Flatten(name="flatten"),
            layers.Dense(10, activation="softmax", name="digit"),
        ],
        name="digits",
    )


def main(folder: Path) -> None:
    if (folder / "digits.keras").exists() and (folder / "digits.npz").exists():
        return
    keras.utils.set_random_seed(7)
    images, labels = load_digits(return_X_y=True)
    images = (images.reshape(-1, 8, 8, 1) / 16).astype("float32")
    x, x_test, y, y_test = train_test_split(images, labels, test_size=360, random_state=7)
    model = network()
    model.compile(
        keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    model.fit(x, y, batch_size=64, epochs=8, verbose=0)
    _, accuracy = model.evaluate(x_test, y_test, verbose=0)
    print(f"trained on {len(x)} digits; {accuracy:.1%} of {len(x_test)} test digits are right")
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "digits.keras")
    np.savez(folder / "digits.npz", x=x_test, y=y_test)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
