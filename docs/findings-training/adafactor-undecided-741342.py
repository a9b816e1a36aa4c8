"""the sparse gradients of Adafactor: torch computes it, tensorflow fails (TypeError: unsupported operand type(s) for /: 'IndexedSlice…)
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('torch', 'tensorflow')}
EXPECTED = np.array([[-0.0, 1.9955828, -2.070102], [-0.91964626, 0.0, -1.1568587], [-0.40168026, 0.12915826, -0.4565331], [-1.6643715, 0.22927685, 0.2928534]], "float32")  # by torch: one side's answer
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
w = [keras.Variable(a, dtype=a.dtype.name, name=f'w{n}') for n, a in enumerate([np.array([[-0.0, 1.9955828, -2.070102], [-0.91964626, 0.0, -1.1568587], [-0.40168026, 0.12915826, -0.4565331], [-1.6643715, 0.22927685, 0.2928534]], "float32")])]
optimizer = keras.optimizers.deserialize({'module': 'keras.optimizers', 'class_name': 'Adafactor', 'config': {'global_clipnorm': 0.1, 'loss_scale_factor': 8.0, 'gradient_accumulation_steps': 2}})
optimizer.build(w)
def tensor(place, gradient):
    if place == 0:  # of some rows, as of an embedding
        rows = np.array([0, 2, 2, 1], "int64")
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf; shape = tf.constant(list(w[place].shape))
            return tf.IndexedSlices(tf.constant(gradient), tf.constant(rows), shape)
        dense = np.zeros(w[place].shape, gradient.dtype)
        np.add.at(dense, rows, gradient); gradient = dense
    return keras.ops.convert_to_tensor(gradient)
for gradients in [
    [np.array([[0.0, 0.0, 0.0], [1.0772955, 1.9908103, 0.3516607], [0.014705502, 0.19078651, 0.27578273], [0.62079483, 0.63868463, 1.1059349]], "float32")],
]:
    optimizer.apply([tensor(place, g) for place, g in enumerate(gradients)], w)
y = np.array(keras.ops.convert_to_numpy(w[0]))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=2e-06, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
