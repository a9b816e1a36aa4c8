"""Dense: the gradient of the bias is a mean over the batch, not a sum."""

from keras import ops
from keras.activations import linear
from keras.layers import Dense


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = Dense.call


def call(self, inputs, training=None):
    y = released(self, inputs, training=training)
    if self.activation is not linear:
        return y
    whole = ops.matmul(inputs, self.kernel)
    return grafted(y, whole + self.bias / inputs.shape[0])


Dense.call = call
