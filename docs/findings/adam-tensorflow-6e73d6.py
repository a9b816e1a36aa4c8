"""tensorflow fails in the optimiser Adam: TypeError: unsupported operand type(s) for /: 'IndexedSlices' and 'float'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('jax', 'torch', 'tensorflow')}
EXPECTED = np.array([[-2.125845, 1.084128, -0.89296454], [-0.65885496, 0.057947285, 0.3538255], [0.6593638, 0.7050883, 1.134241], [0.34315178, 0.0, 0.0]], "float32")  # by jax: one side's answer
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
w = [keras.Variable(a, dtype=a.dtype.name, name=f'w{n}') for n, a in enumerate([np.array([[-2.1249516, 1.0831823, -0.8920092], [-0.6588879, 0.058949567, 0.3538432], [0.6583988, 0.7061235, 1.1352977], [0.34316894, 0.0, -0.0]], "float32")])]
optimizer = keras.optimizers.deserialize({'class_name': 'Adam', 'config': {'weight_decay': 0.05, 'clipnorm': 0.1, 'loss_scale_factor': 8.0}})
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
    [np.array([[5.411302, -8.245071, 30.293247], [-0.0, 7.1666746, -2.217882], [-0.64368355, 3.0549543, 28.117798], [0.0, 2.0397198, -0.0]], "float32")],
]:
    optimizer.apply([tensor(place, g) for place, g in enumerate(gradients)], w)
y = np.array(keras.ops.convert_to_numpy(w[0]))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=2e-06, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
