"""numpy gives NaN, unlike the others, in LayerNormalization layer 'layer_normalization_3'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'jax', 'torch', 'numpy')}
EXPECTED = np.array([[0.17266595, -0.69491917, -0.42566863, -1.1787449, -1.3757827, 0.6399859, 0.58737373, 1.3414816, -0.8238706, 1.7582526, -0.32972878, 1.6365224, -0.48343888, -0.8032384, 0.23765746, 1.0629466, 0.14378083, -0.64540184, -1.4428375, -1.5067973, 0.5048448, 1.0185872, -0.19974574, -1.1612076, 0.8958255, -1.3788775, -0.77951133, 0.6296698, -2.4032676, 0.38208306, -0.6412754, 0.08910543, -0.10690073, 0.1871085, 0.7070406, -0.827997, 1.4745594, 0.7410838, 0.86487716, 1.2042773, 0.8050437, 0.86487716, 0.052999035, -1.5336192, -0.1687974, -0.8393448, -1.5294927, 0.24694197, -0.62683284, -1.114785, -1.128196, 0.2572581, 0.35216632, 1.3703667, -0.0408776, 1.0742942, 1.4549588, 1.1888031, -2.5249977, 1.271332, 0.3325657, 0.4212843, 0.36557728, 0.3779566]], "float32")  # by an independent NumPy computation in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[10000.188, 9999.367, 9999.622, 9998.909, 9998.723, 10000.631, 10000.581, 10001.295, 9999.245, 10001.689, 9999.713, 10001.574, 9999.567, 9999.265, 10000.25, 10001.031, 10000.161, 9999.414, 9998.659, 9998.599, 10000.503, 10000.989, 9999.836, 9998.926, 10000.873, 9998.72, 9999.287, 10000.621, 9997.75, 10000.387, 9999.418, 10000.109, 9999.924, 10000.202, 10000.694, 9999.241, 10001.421, 10000.727, 10000.844, 10001.165, 10000.787, 10000.844, 10000.075, 9998.573, 9999.865, 9999.23, 9998.577, 10000.259, 9999.432, 9998.97, 9998.957, 10000.269, 10000.358, 10001.322, 9999.986, 10001.042, 10001.402, 10001.15, 9997.635, 10001.229, 10000.34, 10000.424, 10000.371, 10000.383]], "float32")
layer = keras.layers.LayerNormalization(axis=(-1,))
call = lambda x0: keras.tree.flatten(layer(x0))[0]
y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=0.039, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
