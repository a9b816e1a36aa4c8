"""openvino gives NaN, unlike the others, in LayerNormalization layer 'layer_normalization_3'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'jax', 'torch', 'openvino')}
EXPECTED = np.array([[0.33501536, -0.5343254, -0.26453, -1.0191302, -1.2165667, 0.80328095, 0.7505623, 1.5061963, -0.6635378, 1.9238106, -0.16839601, 1.8018341, -0.32241714, -0.6428638, 0.40013838, 1.2270975, 0.3060718, -0.48470786, -1.2837571, -1.3478465, 0.6678664, 1.1826484, -0.03814995, -1.0015574, 1.0596383, -1.2196678, -0.6190887, 0.79294395, -2.2461307, 0.54485625, -0.4805731, 0.25128573]], "float32")  # by an independent NumPy computation in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[10000.188, 9999.367, 9999.622, 9998.909, 9998.723, 10000.631, 10000.581, 10001.295, 9999.245, 10001.689, 9999.713, 10001.574, 9999.567, 9999.265, 10000.25, 10001.031, 10000.161, 9999.414, 9998.659, 9998.599, 10000.503, 10000.989, 9999.836, 9998.926, 10000.873, 9998.72, 9999.287, 10000.621, 9997.75, 10000.387, 9999.418, 10000.109]], "float32")
layer = keras.layers.LayerNormalization(axis=(-1,))
call = lambda x0: keras.tree.flatten(layer(x0))[0]
if keras.backend.backend() == "openvino" and os.environ.get("MODE") != "predict":
    import openvino as ov, openvino.opset15 as opset; from keras.src.backend.openvino import core
    given = [opset.parameter(list(x.shape), core.OPENVINO_DTYPES[x.dtype.name]) for x in [x0]]
    node = call(*[core.OpenVINOKerasTensor(p.output(0)) for p in given]).output
    device = os.environ.get("DEVICE", "CPU")
    graph = ov.compile_model(ov.Model([node], given), device, {"INFERENCE_PRECISION_HINT": "f32"})
    y = np.array(graph([x0])[0])
else:
    y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=0.039, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
