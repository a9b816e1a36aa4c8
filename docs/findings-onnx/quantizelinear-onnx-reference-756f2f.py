"""onnx-reference differs by 2 (relative) in QuantizeLinear layer 'y0'
Fails or dies while the bug is there, exits 0 when it is gone. Needs onnx, numpy and the runtimes."""
import os, sys, numpy as np, onnx, onnx.reference; from onnx import helper, numpy_helper
EXPECTED = np.array([[[[127]]]], "int8")  # by an independent NumPy computation in float64
feeds = {'x0': np.array([[[[np.inf]]]], "float32")}
nodes = [helper.make_node('QuantizeLinear', ['x0', 'w0', 'w1'], ['y0'])]
inputs = [helper.make_tensor_value_info('x0', 1, [1, 1, 1, 1])]
constants = [
    numpy_helper.from_array(np.array([1.0], "float32"), 'w0'),
    numpy_helper.from_array(np.array([4], "int8"), 'w1'),
]
graph = helper.make_graph(nodes, 'graph', inputs, [onnx.ValueInfoProto(name='y0')], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
def judge(name, y):
    right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
    right = right and np.allclose(y, EXPECTED, rtol=0, atol=1.3e-10, equal_nan=True)
    print(f"{name:24}", "ok:" if right else "WRONG:", y.dtype, y.shape, *y.ravel()[:6], flush=True)
    return not right
import onnxruntime as ort; options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
y = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, feeds)[0]
wrong = judge('onnxruntime', y)
y = np.asarray(onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0])
sys.exit(judge('onnx-reference', y) or wrong)
