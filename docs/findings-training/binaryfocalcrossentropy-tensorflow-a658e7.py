"""tensorflow gives NaN, unlike the others, in the gradient of the loss BinaryFocalCrossentropy
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'torch')}
EXPECTED = np.zeros((1, 4)).astype("float32")  # by torch in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[1.0, 0.0, 0.0, 0.0]], "float32")
truth = np.array([[0.0, 0.0, 1.0, 0.0]], "float32")
weight = np.array([0.0], "float32")
number = lambda x0: keras.losses.deserialize({'module': 'keras.losses', 'class_name': 'BinaryFocalCrossentropy', 'config': {'gamma': 0.0}})(truth, x0, keras.ops.convert_to_tensor(weight))
def gradients(number, arrays, variables):  # of a number by what it is given and by variables
    name, mode = keras.backend.backend(), os.environ.get("MODE")
    moved = [i for i, a in enumerate(arrays) if "float" in str(a.dtype)]
    if name == "tensorflow":
        import tensorflow as tf
        def pull():
            feeds = [tf.constant(a) for a in arrays]
            with tf.GradientTape() as tape:
                tape.watch([feeds[i] for i in moved])
                value = number(*feeds)
            return tape.gradient(value, [*[feeds[i] for i in moved], *[v.value for v in variables]])
        found = (tf.function(pull, jit_compile=mode == "xla") if mode else pull)()
        found = [None if g is None else tf.convert_to_tensor(g) for g in found]
    elif name == "torch":
        import torch
        feeds = [torch.tensor(a) for a in arrays]
        sources = [*[feeds[i].requires_grad_() for i in moved], *[v.value for v in variables]]
        value = (torch.compile(number) if mode else number)(*feeds)
        found = torch.autograd.grad(value, sources, allow_unused=True)
    else:
        import jax
        def pure(sources):
            feeds = [sources[moved.index(i)] if i in moved else a for i, a in enumerate(arrays)]
            with keras.StatelessScope(list(zip(variables, sources[len(moved):]))):
                return number(*feeds)
        grad = jax.jit(jax.grad(pure)) if mode else jax.grad(pure)
        found = grad([*[jax.numpy.asarray(arrays[i]) for i in moved], *[v.value for v in variables]])
    return [None if g is None else np.asarray(keras.ops.convert_to_numpy(g)) for g in found]
found = gradients(number, [x0], [])
y = np.array(np.nan if found[0] is None else found[0])  # the gradient of prediction
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=9.5e-37, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
