"""torch fails in LSTM layer 'lstm_1': AttributeError: 'tuple' object has no attribute 'shape'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy. Without KERAS_BACKEND in
the environment it runs every target in a process of its own."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'numpy', 'openvino', 'torch')}
EXPECTED = np.array([[0.0]], "float32")  # by tensorflow, numpy, openvino: what they agree on

def compute():
    import keras
    x0 = np.array([[[0.0]]], "float32")
    x1 = np.array([[False]], "bool")
    layer = keras.layers.LSTM(go_backwards=True, unroll=True, units=1)
    call = lambda x0, x1: keras.tree.flatten(layer(x0, mask=x1))[0]
    call(x0, x1)  # creates the weights
    layer.set_weights([np.float32([[0.0, 0.0, 0.0, 0.0]]), np.float32([[0.0, 0.0, 0.0, 0.0]]), np.float32([0.0, 0.0, 0.0, 0.0])])
    if keras.backend.backend() == "openvino":
        import openvino as ov, openvino.opset15 as opset; from keras.src.backend.openvino import core
        given = [opset.parameter(list(x.shape), core.OPENVINO_DTYPES[x.dtype.name]) for x in (x0, x1)]
        node = call(*[core.OpenVINOKerasTensor(p.output(0)) for p in given]).output
        graph = ov.compile_model(ov.Model([node], given), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        return np.array(graph([x0, x1])[0])
    tensors = [keras.ops.convert_to_tensor(x) for x in (x0, x1)]
    return np.asarray(keras.ops.convert_to_numpy(call(*tensors)))

def judge(y):
    if EXPECTED is None or y.shape != EXPECTED.shape or y.dtype != EXPECTED.dtype:
        return f"WRONG: shape {y.shape}, {y.dtype}"
    y, right = np.array([y, EXPECTED], "float64")
    apart = np.where((y == right) | (np.isnan(y) & np.isnan(right)), 0, abs(y - right))
    d = np.max(apart, initial=0) / np.max(abs(right), initial=1e-30, where=np.isfinite(right))
    return f"{'ok' if d <= 9.5e-07 else 'WRONG'}: relative distance {d:.3g}, {np.ravel(y)[:6]}"

if "KERAS_BACKEND" in os.environ:
    try:
        text = judge(compute())
    except Exception as error:
        text = f"{'ok' if EXPECTED is None else 'WRONG'}: {type(error).__name__}: {error}"
    sys.exit(print(" ".join(text.split())[:200]) or text.startswith("WRONG"))
codes = []
for name, env in TARGETS.items():
    command = [env.get("PYTHON", sys.executable), __file__]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
    print(f"{name:24}", done.stdout.strip() or f"WRONG: died with exit code {done.returncode}")
    codes.append(done.returncode)
sys.exit(any(codes))
