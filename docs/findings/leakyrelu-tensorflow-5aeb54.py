"""tensorflow fails in LeakyReLU layer 'leakyrelu_1': InvalidArgumentError: Value for attr 'T' of bool is not in the list of allowed values: half, bfloat16, float, double ; NodeDef: {{node LeakyRelu}}; Op<name=Lea…
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('numpy', 'tensorflow')}
EXPECTED = np.array([[[False]]], "bool")  # by an independent NumPy computation in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[False]]], "bool")
layer = keras.layers.LeakyReLU()
call = lambda x0: keras.tree.flatten(layer(x0))[0]
y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.array_equal(y, EXPECTED)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
