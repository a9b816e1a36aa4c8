"""SimpleRNN: the state is detached from step to step."""

from keras import ops
from keras.layers import SimpleRNNCell

released = SimpleRNNCell.call


def call(self, sequence, states, training=False):
    several = isinstance(states, (list, tuple))
    held = [ops.stop_gradient(state) for state in (states if several else [states])]
    return released(self, sequence, held, training=training)


SimpleRNNCell.call = call
