"""jax differs in infinities in Conv2DTranspose layer 'conv2dtranspose_2'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'jax', 'torch', 'numpy')}
EXPECTED = np.array([[[[-2.6260178e+28], [2.7806927e+36], [2.6573108e+38]], [[-1.0750335e+37], [np.inf], [1.427683e+38]], [[-1.6125503e+37], [np.inf], [-3.18017e+38]]]], "float32")  # by an independent NumPy computation in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[[6.0, 7.0, 8.0]], [[9.0, 10.0, 11.0]]]], "float32")
layer = keras.layers.Conv2DTranspose(filters=1, kernel_size=(2, 3))
call = lambda x0: keras.tree.flatten(layer(x0))[0]
call(x0)  # creates the weights
layer.set_weights([np.array([[[[-4.3694026e+27, -6.249583e+24, -1.8529391e+21]], [[8.30152e+32, 1.269112e+30, 3.4696286e+35]], [[-3.0637125e+31, -2.9045641e+25, 3.3216408e+37]]], [[[-1.7917226e+36, 2.3492413e+28, 3.9588695e+19]], [[5.9754394e+24, 7.0252234e+23, 1.4005285e+38]], [[2.685219e+31, -3.1801726e+37, 1.5325608e+29]]]], "float32"), np.array([0.0], "float32")])
y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=3e+32, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
