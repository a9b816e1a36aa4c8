"""tensorflow differs by 0.013 (relative) in the optimiser ScheduleFreeAdamW
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'jax', 'torch')}
EXPECTED = np.array([0.0, 0.4012554, -0.21680452, -2.0], "float32")  # by jax in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
w = [keras.Variable(a, dtype=a.dtype.name, name=f'w{n}') for n, a in enumerate([np.array([0.0, 1.0, 0.0, -2.0], "float32")])]
optimizer = keras.optimizers.deserialize({'module': 'keras.optimizers', 'class_name': 'ScheduleFreeAdamW', 'config': {'learning_rate': 0.5, 'clipnorm': 0.1, 'use_ema': True, 'loss_scale_factor': 8.0}})
optimizer.build(w)
def tensor(place, gradient):
    return keras.ops.convert_to_tensor(gradient)
for gradients in [
    [np.array([-0.0, 12.840005, 34.51711, -0.0], "float32")],
    [np.array([-0.0, 0.2291539, -2.4938943, 0.0], "float32")],
]:
    optimizer.apply([tensor(place, g) for place, g in enumerate(gradients)], w)
y = np.array(keras.ops.convert_to_numpy(w[0]))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=3.6e-06, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
