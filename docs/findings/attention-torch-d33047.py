"""torch gives NaN, unlike the others, in Attention layer 'attention_2'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'jax', 'torch', 'numpy')}
EXPECTED = np.array([[[0.0]]], "float16")  # by tensorflow and jax in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[0.0]]], "float32")
x1 = np.array([[[0.0]]], "float16")
x2 = np.array([[True]], "bool")
x3 = np.array([[False]], "bool")
layer = keras.layers.Attention(dtype='float16')
call = lambda x0, x1, x2, x3: keras.tree.flatten(layer([x0, x1], mask=[x2, x3]))[0]
y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0, x1, x2, x3]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=7.8e-33, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
