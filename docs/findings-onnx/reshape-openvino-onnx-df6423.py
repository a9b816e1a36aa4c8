"""openvino:onnx differs by 1 (relative) in Reshape layer 'y0'
Fails or dies while the bug is there, exits 0 when it is gone. Needs onnx, numpy and the runtimes."""
import os, sys, numpy as np, onnx, onnx.reference; from onnx import helper, numpy_helper
EXPECTED = np.array([-9223372036854775808], "int64")  # by an independent NumPy computation in float64
feeds = {'x0': np.array([[[[[-9223372036854775808]]]]], "int64")}
nodes = [helper.make_node('Reshape', ['x0', 'w0'], ['y0'])]
inputs = [helper.make_tensor_value_info('x0', 7, [1, 1, 1, 1, 1])]
constants = [numpy_helper.from_array(np.array([1], "int64"), 'w0')]
graph = helper.make_graph(nodes, 'graph', inputs, [onnx.ValueInfoProto(name='y0')], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
def judge(name, y):
    right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
    right = right and np.allclose(y, EXPECTED, rtol=0, atol=9.2e+06, equal_nan=True)
    print(f"{name:24}", "ok:" if right else "WRONG:", y.dtype, y.shape, *y.ravel()[:6], flush=True)
    return not right
y = np.asarray(onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0])
wrong = judge('onnx-reference', y)
import openvino; read = openvino.Core().read_model(model.SerializeToString())
run = openvino.compile_model(read, "CPU", {'INFERENCE_PRECISION_HINT': 'f32'})
y = run(list(feeds.values()))[0]
sys.exit(judge('openvino:onnx', y) or wrong)
