"""openvino fails in IntegerLookup layer 'integerlookup_1': RuntimeError: `convert_to_numpy` failed to convert the tensor.
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'jax', 'torch', 'numpy', 'openvino')}
EXPECTED = np.array([[[1]]], "int64")  # by tensorflow, jax, torch, numpy: what they agree on
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[1]]], "int32")
layer = keras.layers.IntegerLookup(vocabulary=(1, 2, 3), vocabulary_size=4)
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
right = right and np.allclose(y, EXPECTED, rtol=0, atol=1, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
