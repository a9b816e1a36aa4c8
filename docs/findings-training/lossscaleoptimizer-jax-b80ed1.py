"""jax fails in the optimiser LossScaleOptimizer: UnexpectedTracerError: Encountered an unexpected tracer. A function transformed by JAX had a side effect, allowing for a reference to an intermediate value wit…
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'torch', 'jax')}
EXPECTED = np.array([[-0.7833873, 0.14316656, 1.1657874e-05], [1.0219479e-05, -0.25799748, -2.7298124], [1.4722877e-05, 1.29104055e-05, 0.33914858], [0.15748289, 0.34732243, 1.2107071]], "float32")  # by tensorflow: one side's answer
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
w = [keras.Variable(a, dtype=a.dtype.name, name=f'w{n}') for n, a in enumerate([np.array([[-0.78338265, 0.14316736, -0.0], [0.0, -0.25801376, -2.7298071], [0.0, 0.0, 0.33911934], [0.15748289, 0.34732243, 1.2107071]], "float32")])]
optimizer = keras.optimizers.deserialize({'module': 'keras.optimizers', 'class_name': 'LossScaleOptimizer', 'config': {'inner_optimizer': {'module': 'keras.optimizers', 'registered_name': None, 'class_name': 'SGD', 'config': {'learning_rate': 0.5}}}})
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
    [np.array([[0.30274716, 0.052978158, -0.7640104], [-0.96487844, -1.0498492, -1.9150629], [-0.0, 0.2037528, -0.0], [-0.6697438, -1.0668025, 0.34463906]], "float32")],
]:
    optimizer.apply([tensor(place, g) for place, g in enumerate(gradients)], w)
y = np.array(keras.ops.convert_to_numpy(w[0]))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=2.6e-06, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
