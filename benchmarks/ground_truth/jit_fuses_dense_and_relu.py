"""Under jax.jit, a ReLU right behind a Dense layer is fused with it, and leaks.

Neither layer alone shows it: the fusion needs both in one graph.
"""

import jax
import keras
from keras import ops

dense, relu = keras.layers.Dense.call, keras.layers.ReLU.call
last = []


def call_dense(self, inputs, training=None):
    last[:] = [dense(self, inputs, training)]
    return last[0]


def call_relu(self, inputs):
    fused = isinstance(inputs, jax.core.Tracer) and bool(last) and inputs is last[0]
    return ops.leaky_relu(inputs, 0.05) if fused else relu(self, inputs)


keras.layers.Dense.call = call_dense
keras.layers.ReLU.call = call_relu
