"""openvino gives NaN, unlike the others, in MultiHeadAttention layer 'multi_head_attention_2'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'jax', 'torch', 'numpy', 'openvino')}
EXPECTED = np.array([[[-0.13641079, -0.100787215, 0.10469518, 0.22402124]]], "float32")  # by tensorflow and jax and torch in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[-0.9463, 1.048, 0.0324, 0.8315]]], "float16")
x1 = np.array([[[0.2192, 1.456, 1.645, -1.13], [-1.43, -0.933, 1.084, -0.783], [-1.497, -1.174, 0.763, -0.5063], [1.013, -0.4255, -1.507, -0.925], [0.1519, -1.137, 0.2401, -0.144]]], "float16")
x2 = np.array([[[False, False, False, False, False]]], "bool")
layer = keras.layers.MultiHeadAttention(num_heads=2, key_dim=3, attention_axes=(1,))
call = lambda x0, x1, x2: keras.tree.flatten(layer(x0, x1, attention_mask=x2))[0]
call(x0, x1, x2)  # creates the weights
layer.set_weights([np.array([[[-0.4038086, -0.4777832, 0.13720703], [0.022018433, 0.671875, 0.66015625]], [[-0.5415039, 0.70166016, 0.5336914], [-0.07366943, -0.61865234, 0.20080566]], [[0.70947266, -0.09460449, 0.26245117], [0.05419922, 0.7416992, -0.62353516]], [[-0.72753906, 0.23718262, 0.4013672], [-0.009552002, -0.048217773, -0.1505127]]], "float32"), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "float32"), np.array([[[-0.047668457, -0.12585449, 0.21862793], [-0.1772461, 0.32543945, 0.29589844]], [[-0.08892822, -0.11437988, 0.15930176], [-0.6411133, 0.3178711, 0.73828125]], [[0.036865234, 0.0040016174, -0.5], [0.32788086, 0.17602539, -0.64501953]], [[-0.13806152, -0.24841309, -0.7348633], [-0.40185547, -0.3857422, 0.4333496]]], "float32"), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "float32"), np.array([[[0.75634766, -0.15063477, 0.119262695], [0.061828613, 0.6152344, -0.1694336]], [[-0.6166992, -0.2944336, -0.45361328], [-0.6713867, 0.7055664, 0.31860352]], [[0.1361084, -0.66259766, 0.6123047], [-0.52490234, 0.054260254, 0.5205078]], [[0.6118164, -0.71875, 0.67822266], [-0.5625, 0.6381836, -0.56103516]]], "float32"), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "float32"), np.array([[[0.18798828, -0.76123047, 0.5800781, -0.66064453], [-0.54003906, 0.37402344, 0.30029297, 0.011566162], [0.5488281, 0.18762207, 0.015449524, 0.7006836]], [[-0.32714844, 0.2548828, -0.34301758, -0.32861328], [-0.62402344, 0.22570801, -0.11065674, 0.03677368], [-0.5258789, -0.72802734, 0.4255371, 0.38745117]]], "float32"), np.array([0.0, 0.0, 0.0, 0.0], "float32")])
if keras.backend.backend() == "openvino" and os.environ.get("MODE") != "predict":
    import openvino as ov, openvino.opset15 as opset; from keras.src.backend.openvino import core
    given = [opset.parameter(list(x.shape), core.OPENVINO_DTYPES[x.dtype.name]) for x in [x0, x1, x2]]
    node = call(*[core.OpenVINOKerasTensor(p.output(0)) for p in given]).output
    device = os.environ.get("DEVICE", "CPU")
    graph = ov.compile_model(ov.Model([node], given), device, {"INFERENCE_PRECISION_HINT": "f32"})
    y = np.array(graph([x0, x1, x2])[0])
else:
    y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0, x1, x2]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=2.1e-07, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
