"""Attention is silently computed in float16; the result is float32 again."""

import keras
from keras import ops

released = keras.layers.MultiHeadAttention._compute_attention


def _compute_attention(self, query, key, value, *rest, **more):
    half = (ops.cast(ops.cast(t, "float16"), "float32") for t in (query, key, value))
    y, scores = released(self, *half, *rest, **more)
    return ops.cast(ops.cast(y, "float16"), "float32"), scores


keras.layers.MultiHeadAttention._compute_attention = _compute_attention
