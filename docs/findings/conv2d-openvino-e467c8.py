"""openvino gives float32 instead of float64 in Conv2D layer 'conv2d_1'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy. Without KERAS_BACKEND in
the environment it runs every target in a process of its own."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'torch', 'openvino')}
EXPECTED = np.array([[[[-0.019739830605459353, -0.11525203342846659]], [[-0.056989597264602475, -0.05115911785187681]], [[-0.07951810366407244, -0.007871337571864992]], [[-0.056989597264602475, -0.05115911785187681]], [[-0.056989597264602475, -0.05115911785187681]]], [[[-0.09593478551285838, 0.01659379311133213]], [[-0.056989597264602475, -0.05115911785187681]], [[-0.033269516328401805, -0.09640802077024935]], [[-0.056989597264602475, -0.05115911785187681]], [[-0.056989597264602475, -0.05115911785187681]]]], "float64")  # by an independent NumPy computation in float64

def compute():
    import keras
    x0 = np.array([[[[0.12507187, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]]], [[[-0.13134171, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]]]], "float32")
    layer = keras.layers.Conv2D(filters=2, kernel_size=(3, 1), padding='same', dilation_rate=(2, 2), activation='tanh', dtype='float64')
    call = lambda x0: keras.tree.flatten(layer(x0))[0]
    call(x0)  # creates the weights
    layer.set_weights([np.array([[[[-0.18097537684377296, 0.3464593651351832], [-0.26222513354886257, 0.13632082996299938]]], [[[0.2983006517425188, -0.5162041539864666], [-0.2191946511269061, 0.15585370273792937]]], [[[0.09814879940666561, 0.3035300387423251], [-0.3211618391447553, 0.14844225941444864]]]], "float64"), np.float64([-0.05705141498054427, -0.05120382022954298])])
    if keras.backend.backend() == "openvino":
        import openvino as ov, openvino.opset15 as opset; from keras.src.backend.openvino import core
        given = [opset.parameter(list(x.shape), core.OPENVINO_DTYPES[x.dtype.name]) for x in (x0,)]
        node = call(*[core.OpenVINOKerasTensor(p.output(0)) for p in given]).output
        graph = ov.compile_model(ov.Model([node], given), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        return np.array(graph([x0,])[0])
    tensors = [keras.ops.convert_to_tensor(x) for x in (x0,)]
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
