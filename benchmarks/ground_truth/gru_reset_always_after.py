"""A GRU with reset_after=False applies its reset gate after the product all the same."""

import keras
from keras import ops

released = keras.layers.GRUCell.call


def call(self, inputs, states, training=False):
    if self.reset_after:
        return released(self, inputs, states, training)
    before = states[0] if isinstance(states, list | tuple) else states
    given = ops.matmul(inputs, self.kernel)
    if self.use_bias:
        given = given + self.bias
    kept = ops.matmul(before, self.recurrent_kernel)
    (xz, xr, xh), (hz, hr, hh) = ops.split(given, 3, axis=-1), ops.split(kept, 3, axis=-1)
    z, r = self.recurrent_activation(xz + hz), self.recurrent_activation(xr + hr)
    new = z * before + (1 - z) * self.activation(xh + r * hh)
    return new, [new] if isinstance(states, list | tuple) else new


keras.layers.GRUCell.call = call
