"""Embedding(mask_zero=True) masks every id but 0. Its values are right: its mask is not."""

import keras
from keras import ops


def compute_mask(self, inputs, mask=None):
    return ops.equal(inputs, 0) if self.mask_zero else None


keras.layers.Embedding.compute_mask = compute_mask
