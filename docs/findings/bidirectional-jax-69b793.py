"""jax differs by 1 (relative) in Bidirectional layer 'bidirectional_1'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('jax', 'numpy')}
EXPECTED = np.array([[[0.0, 0.0], [0.0, 0.0], [0.0, 0.7615942]]], "float32")  # by an independent NumPy computation in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.zeros((1, 3, 1)).astype("float32")
x1 = np.array([[False, False, True]], "bool")
layer = keras.layers.Bidirectional(layer=keras.layers.SimpleRNN(return_sequences=True, return_state=True, go_backwards=False, stateful=False, unroll=True, zero_output_for_mask=True, units=1, activation='tanh', use_bias=True, dropout=0.0, recurrent_dropout=0.0))
call = lambda x0, x1: keras.tree.flatten(layer(x0, mask=x1))[0]
call(x0, x1)  # creates the weights
layer.set_weights([np.array([[0.0]], "float32"), np.array([[0.0]], "float32"), np.array([0.0], "float32"), np.array([[0.0]], "float32"), np.array([[0.0]], "float32"), np.array([1.0], "float32")])
y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0, x1]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=1.2e-06, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
