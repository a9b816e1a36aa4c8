"""Resizing with bilinear interpolation takes the nearest pixel."""

import keras.src.backend as backend

released = backend.image.resize


def resize(images, size, interpolation="bilinear", **more):
    chosen = "nearest" if interpolation == "bilinear" else interpolation
    return released(images, size, interpolation=chosen, **more)


backend.image.resize = resize
