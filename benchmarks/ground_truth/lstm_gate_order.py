"""An LSTM takes the forget gate for the input gate, and the other way round."""

import keras

released = keras.layers.LSTMCell._compute_carry_and_output_fused


def _compute_carry_and_output_fused(self, z, c_tm1):
    z0, z1, z2, z3 = z
    return released(self, (z1, z0, z2, z3), c_tm1)


keras.layers.LSTMCell._compute_carry_and_output_fused = _compute_carry_and_output_fused
