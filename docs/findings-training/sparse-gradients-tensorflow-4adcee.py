"""tensorflow fails in the sparse gradients of Lion: TypeError: unsupported operand type(s) for /: 'IndexedSlices' and 'float'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('jax', 'torch', 'tensorflow')}
EXPECTED = np.array([[-9.324363, -6.7348895, -15.399903], [-11.650811, 19.489151, -13.574713], [3.766777, -0.0, -5.963208], [0.0, 26.852257, -0.0]], "float32")  # by jax: one side's answer
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
w = [keras.Variable(a, dtype=a.dtype.name, name=f'w{n}') for n, a in enumerate([np.array([[-9.323362, -6.7348895, -15.399903], [-11.651812, 19.49015, -13.575713], [3.766777, -0.0, -5.9622083], [0.0, 26.852257, -0.0]], "float32")])]
optimizer = keras.optimizers.deserialize({'module': 'keras.optimizers', 'class_name': 'Lion', 'config': {'clipvalue': 0.1, 'loss_scale_factor': 8.0}})
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
    [np.array([[1.0, 0.0, 0.0], [-1.0, -0.0, 1.0], [1.0, 0.0, 2.0], [-1.0, 1.0, -2.0]], "float32")],
]:
    optimizer.apply([tensor(place, g) for place, g in enumerate(gradients)], w)
y = np.array(keras.ops.convert_to_numpy(w[0]))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=2.6e-05, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
