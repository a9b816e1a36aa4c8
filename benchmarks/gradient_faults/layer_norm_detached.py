"""LayerNormalization: mean and variance are detached."""

from keras import ops
from keras.layers import LayerNormalization


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = LayerNormalization.call


def call(self, inputs):
    mean = ops.stop_gradient(ops.mean(inputs, -1, keepdims=True))
    scale = ops.stop_gradient(ops.rsqrt(ops.var(inputs, -1, keepdims=True) + self.epsilon))
    return grafted(released(self, inputs), (inputs - mean) * scale * self.gamma + self.beta)


LayerNormalization.call = call
