"""tensorflow differs by 9.3e-05 (relative) in Resizing layer 'resizing_1'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy. Without KERAS_BACKEND in
the environment it runs every target in a process of its own."""
import os, subprocess, sys
import numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'jax', 'numpy')}
EXPECTED = np.array([[[[-0.065789305]], [[0.5]], [[1.0657896]]]], "float32")  # by jax, numpy: what they agree on

def compute():
    import keras
    x0 = np.arange(2.0).reshape((1, 2, 1, 1)).astype("float32")
    layer = keras.layers.Resizing(height=3, width=1, interpolation='bicubic')
    call = lambda x0: keras.tree.flatten(layer(x0))[0]
    tensors = [keras.ops.convert_to_tensor(x) for x in (x0,)]
    return np.asarray(keras.ops.convert_to_numpy(call(*tensors)))

def judge(y):
    if EXPECTED is None or y.shape != EXPECTED.shape or y.dtype != EXPECTED.dtype:
        return f"WRONG: shape {y.shape}, {y.dtype}"
    y, right = np.nan_to_num(np.array([y, EXPECTED], "float64"), nan=1e300)
    d = np.max(abs(y - right), initial=0) / max(np.max(abs(right), initial=0), 1e-30)
    return f"{'ok' if d <= 4.5e-06 else 'WRONG'}: relative distance {d:.3g}, {np.ravel(y)[:6]}"

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
