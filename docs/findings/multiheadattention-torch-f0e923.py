"""torch differs by 0.83 (relative) in MultiHeadAttention layer 'multi_head_attention_2'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'jax', 'torch', 'numpy')}
EXPECTED = np.array([[[-0.1364, -0.10077, 0.1047, 0.224], [-0.1364, -0.10077, 0.1047, 0.224], [-0.1364, -0.10077, 0.1047, 0.224]]], "float16")  # by tensorflow and jax and torch in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[-0.9463, 1.048, 0.0324, 0.8315], [1.42, -0.3486, 0.3652, 1.348], [-0.5625, 2.04, 1.393, 1.219]]], "float16")
x1 = np.array([[[0.2192, 1.456, 1.645, -1.13], [-1.43, -0.933, 1.084, -0.783], [-1.497, -1.174, 0.763, -0.5063], [1.013, -0.4255, -1.507, -0.925], [0.1519, -1.137, 0.2401, -0.144]]], "float16")
x2 = np.array([[[False, False, False, False, False]]], "bool")
layer = keras.layers.MultiHeadAttention(num_heads=2, key_dim=3, attention_axes=(1,), dtype='float16')
call = lambda x0, x1, x2: keras.tree.flatten(layer(x0, x1, attention_mask=x2))[0]
call(x0, x1, x2)  # creates the weights
layer.set_weights([np.array([[[-0.4038, -0.4778, 0.1372], [0.02202, 0.672, 0.66]], [[-0.5415, 0.7017, 0.5337], [-0.07367, -0.6187, 0.2008]], [[0.7095, -0.0946, 0.2625], [0.0542, 0.7417, -0.6235]], [[-0.7275, 0.2372, 0.4014], [-0.00955, -0.04822, -0.1505]]], "float16"), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "float16"), np.array([[[-0.04767, -0.1259, 0.2186], [-0.1772, 0.3254, 0.296]], [[-0.0889, -0.1144, 0.1593], [-0.641, 0.3179, 0.7383]], [[0.03687, 0.004, -0.5], [0.328, 0.176, -0.645]], [[-0.1381, -0.2484, -0.735], [-0.4019, -0.3857, 0.4333]]], "float16"), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "float16"), np.array([[[0.7563, -0.1506, 0.11926], [0.06183, 0.615, -0.1694]], [[-0.6167, -0.2944, -0.4536], [-0.6714, 0.7056, 0.3186]], [[0.1361, -0.6626, 0.6123], [-0.525, 0.05426, 0.5205]], [[0.612, -0.7188, 0.678], [-0.5625, 0.638, -0.561]]], "float16"), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "float16"), np.array([[[0.188, -0.761, 0.58, -0.6606], [-0.54, 0.374, 0.3003, 0.011566], [0.549, 0.1876, 0.01545, 0.7007]], [[-0.3271, 0.255, -0.343, -0.3286], [-0.624, 0.2257, -0.11066, 0.03677], [-0.526, -0.728, 0.4255, 0.3875]]], "float16"), np.array([0.0, 0.0, 0.0, 0.0], "float16")])
y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0, x1, x2]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=0.024, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
