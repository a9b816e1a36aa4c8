"""A recurrent layer that goes backwards turns its output sequence round once more."""

import keras.src.backend as backend
from keras import ops

released = backend.rnn


def rnn(step_function, inputs, initial_states, go_backwards=False, *rest, **more):
    last, outputs, states = released(
        step_function, inputs, initial_states, go_backwards, *rest, **more
    )
    if go_backwards:
        outputs = ops.flip(outputs, axis=0 if more.get("time_major") else 1)
    return last, outputs, states


backend.rnn = rnn
