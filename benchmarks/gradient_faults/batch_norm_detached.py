"""BatchNormalization: the variance of the batch is detached."""

from keras import ops
from keras.layers import BatchNormalization

released = BatchNormalization._moments


def moments(self, inputs, mask):
    mean, variance = released(self, inputs, mask)
    return mean, ops.stop_gradient(variance)


BatchNormalization._moments = moments
