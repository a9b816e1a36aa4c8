"""tensorflow gives (0, 2, 1, 1) instead of (0, 1, 1, 1) in DepthwiseConv2D layer 'depthwiseconv2d_1'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'jax', 'torch', 'numpy')}
EXPECTED = np.zeros((0, 1, 1, 1), "float32")  # by jax, torch, numpy, openvino: what they agree on
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.zeros((0, 2, 1, 1), "float32")
layer = keras.layers.DepthwiseConv2D(kernel_size=(2, 1))
call = lambda x0: keras.tree.flatten(layer(x0))[0]
call(x0)  # creates the weights
layer.set_weights([np.array([[[[0.0]]], [[[0.0]]]], "float32"), np.array([0.0], "float32")])
y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=1e-30, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
