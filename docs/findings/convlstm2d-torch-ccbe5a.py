"""torch gives NaN, unlike the others, in ConvLSTM2D layer 'convlstm2d_1'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'jax', 'torch', 'numpy', 'openvino')}
EXPECTED = np.array([[[[np.nan, np.nan, np.nan, np.nan], [np.nan, np.nan, np.inf, np.nan]]]], "float32")  # by tensorflow and jax and torch and numpy in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[[[np.nan, 0.0], [0.0, -np.inf]]]]], "float32")
layer = keras.layers.ConvLSTM2D(filters=4, kernel_size=(1, 1), activation='gelu')
call = lambda x0: keras.tree.flatten(layer(x0))[0]
call(x0)  # creates the weights
layer.set_weights([np.array([[[[1.3, 0.2, 1.2, -0.1, -0.4, -0.0, 1.4, -0.4, 1.2, -0.6, 0.7, -0.6, 0.0, -0.1, 0.5, -0.4], [0.7, 0.7, -0.8, 0.4, -1.1, -0.9, -0.3, -1.0, -1.0, -0.5, -0.4, 0.5, -0.0, 0.4, -0.3, 0.4]]]], "float32"), np.zeros((1, 1, 4, 16)).astype("float32"), np.zeros((16,)).astype("float32")])
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
right = right and np.allclose(y, EXPECTED, rtol=0, atol=9.5e-37, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
