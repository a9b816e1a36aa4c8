"""tensorflow fails in SeparableConv2D layer 'separableconv2d_1': InvalidArgumentError: Current implementation only supports equal length strides in the row and column dimensions.
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('jax', 'torch', 'numpy', 'tensorflow')}
EXPECTED = np.array([[[[0.0]]]], "float16")  # by an independent NumPy computation in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[[0.0]]]], "float16")
layer = keras.layers.SeparableConv2D(filters=1, kernel_size=(1, 1), strides=(1, 2), dtype='float16')
call = lambda x0: keras.tree.flatten(layer(x0))[0]
call(x0)  # creates the weights
layer.set_weights([np.array([[[[0.0]]]], "float16"), np.array([[[[0.0]]]], "float16"), np.array([0.0], "float16")])
y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=7.8e-33, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
