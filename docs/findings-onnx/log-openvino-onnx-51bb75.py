"""openvino:onnx differs in infinities in Log layer 'y0'
Fails or dies while the bug is there, exits 0 when it is gone. Needs onnx, numpy and the runtimes."""
import os, sys, numpy as np, onnx, onnx.reference; from onnx import helper, numpy_helper
EXPECTED = np.array([-np.inf, -np.inf, -np.inf, -np.inf], "float32")  # by an independent NumPy computation in float64
feeds = {'x0': np.zeros((4,)).astype("float32")}
nodes = [helper.make_node('Log', ['x0'], ['y0'])]
inputs = [helper.make_tensor_value_info('x0', 1, [4])]
graph = helper.make_graph(nodes, 'graph', inputs, [onnx.ValueInfoProto(name='y0')])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
def judge(name, y):
    right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
    right = right and np.allclose(y, EXPECTED, rtol=0, atol=9.5e-37, equal_nan=True)
    print(f"{name:24}", "ok:" if right else "WRONG:", y.dtype, y.shape, *y.ravel()[:6], flush=True)
    return not right
y = np.asarray(onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0])
wrong = judge('onnx-reference', y)
import openvino; read = openvino.Core().read_model(model.SerializeToString())
run = openvino.compile_model(read, "CPU", {'INFERENCE_PRECISION_HINT': 'f32'})
y = run(list(feeds.values()))[0]
sys.exit(judge('openvino:onnx', y) or wrong)
