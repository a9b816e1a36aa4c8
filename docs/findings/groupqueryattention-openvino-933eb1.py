"""openvino fails in GroupQueryAttention layer 'grouped_query_attention': the process died of SIGSEGV
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'jax', 'torch', 'numpy', 'openvino')}
EXPECTED = np.array([[[0.32723272, -0.47792393, -0.55141467, 0.013529716], [0.3545796, -0.45951575, -0.49245518, -0.012472609], [0.29000518, -0.42102417, -0.45805562, 0.050805718], [0.26336715, -0.4045021, -0.45863613, 0.080258645], [0.34013936, -0.44533172, -0.4694518, 0.000577406], [0.31018388, -0.45826966, -0.54744786, 0.068524815]]], "float32")  # by an independent NumPy computation in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[0.12507187, -0.13134171, 0.5651873, 0.10451703], [-0.48970288, 0.34661824, 0.8627494, 0.73845875], [-0.6067333, -0.85255194, -0.5534038, 0.04130247], [-0.9810591, -0.21536608, -0.84713304, -0.62445056], [-0.49620512, -0.30615768, 0.38985628, 0.7788786], [-0.12783146, 0.8778837, -0.58181006, 0.33771408]]], "float32")
x1 = np.array([[[0.12507187, -0.13134171, 0.5651873, 0.10451703], [-0.48970288, 0.34661824, 0.8627494, 0.73845875], [-0.6067333, -0.85255194, -0.5534038, 0.04130247], [-0.9810591, -0.21536608, -0.84713304, -0.62445056], [-0.49620512, -0.30615768, 0.38985628, 0.7788786], [-0.12783146, 0.8778837, -0.58181006, 0.33771408]]], "float32")
layer = keras.layers.GroupQueryAttention(head_dim=2, num_query_heads=4, num_key_value_heads=1, use_gate=True)
call = lambda x0, x1: keras.tree.flatten(layer(x0, x1))[0]
call(x0, x1)  # creates the weights
layer.set_weights([np.array([[[0.07684326, -0.13452148], [-0.12182617, 0.010192871], [-0.2783203, 0.4387207], [0.26757812, 0.2199707]], [[-0.04675293, 0.28271484], [0.6489258, -0.1821289], [-0.41625977, -0.0491333], [-0.15075684, 0.31982422]], [[0.09979248, 0.07910156], [0.26245117, 0.14208984], [-0.25732422, 0.025894165], [0.056396484, -0.0690918]], [[-0.12573242, 0.01802063], [-0.6196289, 0.007911682], [-0.0141067505, 0.3383789], [0.23413086, 0.1274414]]], "float32"), np.array([[-0.10430908, -0.82958984], [0.7910156, 0.38720703], [-0.23303223, -0.5205078], [0.28955078, 0.7734375]], "float32"), np.array([[[-0.6308594, -0.8852539]], [[-0.15161133, 0.018371582]], [[0.3918457, 0.07537842]], [[0.29614258, 0.35913086]]], "float32"), np.array([[-0.9272461, 1.4814453]], "float32"), np.array([[[-0.5205078, -0.03414917], [0.08331299, 0.3154297], [0.11071777, 0.33544922], [-0.17834473, 0.07904053]], [[-0.26831055, -0.14624023], [-0.2602539, -0.002248764], [-0.13635254, 0.080200195], [-0.022399902, 0.12359619]], [[-0.50439453, 0.0095825195], [0.022644043, 0.27270508], [-0.1270752, -0.32836914], [0.5541992, -0.048065186]], [[0.17602539, 0.10235596], [0.15258789, 0.055725098], [0.28710938, -0.29614258], [-0.19714355, 0.022903442]]], "float32"), np.array([[0.67822266, -0.17248535], [0.23901367, 0.57177734], [-0.016082764, 0.38793945], [-0.36987305, 0.1784668]], "float32"), np.array([[[0.09674072, 0.35766602]], [[-0.77978516, 0.36767578]], [[0.28759766, -0.17749023]], [[-0.18103027, 0.68408203]]], "float32"), np.array([[0.20214844, -1.0224609]], "float32"), np.array([[[-0.17651367, 0.9423828, 0.5073242, -0.02961731], [-0.3491211, 0.13134766, -0.59033203, -0.33984375]], [[-0.31811523, 0.035095215, -0.111694336, -0.47094727], [-0.19104004, 0.24853516, 0.5830078, 0.19824219]], [[-0.2175293, -0.13049316, -0.11779785, -0.7651367], [0.21899414, 0.12536621, 0.36791992, -0.27685547]], [[0.004119873, -0.30395508, 0.035705566, -0.6694336], [-0.5678711, 0.3161621, 0.20263672, -0.057373047]]], "float32"), np.array([-0.10101318, -0.044067383, -0.13000488, -0.04397583], "float32")])
if keras.backend.backend() == "openvino" and os.environ.get("MODE") != "predict":
    import openvino as ov, openvino.opset15 as opset; from keras.src.backend.openvino import core
    given = [opset.parameter(list(x.shape), core.OPENVINO_DTYPES[x.dtype.name]) for x in [x0, x1]]
    node = call(*[core.OpenVINOKerasTensor(p.output(0)) for p in given]).output
    device = os.environ.get("DEVICE", "CPU")
    graph = ov.compile_model(ov.Model([node], given), device, {"INFERENCE_PRECISION_HINT": "f32"})
    y = np.array(graph([x0, x1])[0])
else:
    y = np.asarray(keras.ops.convert_to_numpy(call(*map(keras.ops.convert_to_tensor, [x0, x1]))))
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=5.3e-07, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
