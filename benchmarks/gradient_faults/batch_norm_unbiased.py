"""BatchNormalization: the moving variance is that of a sample."""

from keras import ops
from keras.layers import BatchNormalization

released = BatchNormalization._moments


def call(self, inputs, training=None, mask=None):
    y = plain(self, inputs, training=training, mask=mask)
    if training:
        before = ops.convert_to_tensor(self.moving_variance)
        variance = released(self, inputs, mask)[1]
        count = inputs.shape[0]
        self.moving_variance.assign(before + (1 - self.momentum) * variance / (count - 1))
    return y


plain = BatchNormalization.call
BatchNormalization.call = call
