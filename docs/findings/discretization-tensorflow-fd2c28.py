"""tensorflow differs by 1 (relative) in Discretization layer 'discretization_1'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'torch', 'numpy')}
EXPECTED = np.array([[[[[0.0, 1.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 1.0]], [[0.0, 1.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 1.0]]]]], "float32")  # by tensorflow and torch and numpy in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[[[-7.618724e-39], [999.1051], [-0.45022115], [np.inf]]]]], "float32")
layer = keras.layers.Discretization(bin_boundaries=(-1.0, 0.0, 1.0), epsilon=0.01, output_mode='count', sparse=False)
call = lambda x0: keras.tree.flatten(layer(x0))[0]
y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=9.5e-07, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
