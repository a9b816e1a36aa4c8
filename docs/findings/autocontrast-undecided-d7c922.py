"""AutoContrast layer 'autocontrast_2': tensorflow, jax, torch, numpy and openvino disagree by 1 (relative)
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'jax', 'torch', 'numpy', 'openvino')}
EXPECTED = np.array([[[[0.0, 0.00046763857, 0.0], [0.0, 0.00046763857, 0.0], [0.0, 0.00046763857, 0.0], [0.0, 0.00021769045, 0.0]], [[0.0, 0.07770631, 0.0], [0.0, 0.00046763857, 0.0], [0.0, 0.00046763857, 0.0], [0.0, 0.00046763872, 0.0]], [[0.0, 0.0, 0.0], [1.5425304e+37, 0.99999994, 0.0], [0.0, 0.00046763857, 0.0], [1.8127484e+36, 0.0008139657, 7.210013e+37]], [[5.4734415e+37, 0.00051308225, 0.0], [0.0, 0.00046778945, 0.0], [0.0, 0.0016585558, 0.0], [0.0, 0.29507625, 0.0]]]], "float32")  # by tensorflow, jax, torch, numpy: what they agree on
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[[-9.579331e+28, -2.1127142e+21, -4.480849e+33], [-5.385887e+31, 2.3795235e+23, 2.728991e+34], [1.6131703e+31, 4.235686e+20, 6.652561e+32], [-2.1377979e+24, -4.577078e+31, 2.1093673e+20]], [[2.5611563e+34, 1.4144032e+34, -3.7859077e+20], [1.8806667e+28, -2.130666e+21, -2.6127771e+31], [6.0741687e+34, 2.682958e+21, -1.8783348e+25], [-1.0341891e+35, 2.8696219e+25, -1.4893443e+22]], [[-1.7672397e+24, -8.563449e+31, 9.979196e+26], [1.5425304e+37, 1.8303546e+35, 2.201115e+21], [-1.024547e+25, -3.82799e+19, 3.779307e+23], [1.8127484e+36, 6.3419804e+31, 7.210013e+37]], [[5.4734415e+37, 8.321694e+30, -3.7864766e+30], [-8.0238696e+24, 2.7625081e+28, -1.5672178e+19], [-3.4087533e+34, 2.180821e+32, -7.009373e+23], [-3.9674722e+33, 5.3949056e+34, 9.334165e+32]]]], "float32")
layer = keras.layers.AutoContrast(value_range=(0, 1))
call = lambda x0: keras.tree.flatten(layer(x0, training=False))[0]
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
right = right and np.allclose(y, EXPECTED, rtol=0, atol=2e+32, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
