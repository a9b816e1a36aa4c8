"""tensorflow fails in Resizing layer 'resizing_1': TypeError: Cannot convert 0.0 to EagerTensor of dtype uint8
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('jax', 'torch', 'numpy', 'tensorflow')}
EXPECTED = np.array([[[[90]]]], "uint8")  # by jax, torch, numpy, openvino: what they agree on
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[[10], [90], [220]]]], "uint8")
layer = keras.layers.Resizing(height=1, width=1, pad_to_aspect_ratio=True)
call = lambda x0: keras.tree.flatten(layer(x0, training=False))[0]
y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=90, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
