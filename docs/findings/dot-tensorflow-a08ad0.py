"""tensorflow gives NaN, unlike the others, in Dot layer 'dot_2'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'torch', 'numpy')}
EXPECTED = np.array([[[[[np.inf]], [[np.inf]]]]], "float32")  # by an independent NumPy computation in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[[-0.30859375], [-7.714182e-39]]]], "float32")
x1 = np.array([[[[-np.inf]]]], "float32")
layer = keras.layers.Dot(axes=(-1, -1))
call = lambda x0, x1: keras.tree.flatten(layer([x0, x1]))[0]
y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0, x1]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=9.5e-37, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
