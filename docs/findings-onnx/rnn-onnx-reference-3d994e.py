"""onnx-reference differs by 0.21 (relative) in RNN layer 'y0'
Fails or dies while the bug is there, exits 0 when it is gone. Needs onnx, numpy and the runtimes."""
import os, sys, numpy as np, onnx, onnx.reference; from onnx import helper, numpy_helper
EXPECTED = np.array([[[[0.7615942, 0.7615942]]]], "float32")  # by an independent NumPy computation in float64
feeds = {'x0': np.array([[[0.0]]], "float32")}
nodes = [helper.make_node('RNN', ['x0', 'w0', 'w1', 'w2', 'w3'], ['y0', 'y0_1'], clip=1.0, hidden_size=2)]
inputs = [helper.make_tensor_value_info('x0', 1, [1, 1, 1])]
constants = [
    numpy_helper.from_array(np.zeros((1, 2, 1)).astype("float32"), 'w0'),
    numpy_helper.from_array(np.zeros((1, 2, 2)).astype("float32"), 'w1'),
    numpy_helper.from_array(np.ones((1, 4)).astype("float32"), 'w2'),
    numpy_helper.from_array(np.array([1], "int32"), 'w3'),
]
graph = helper.make_graph(nodes, 'graph', inputs, [onnx.ValueInfoProto(name='y0')], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
def judge(name, y):
    right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
    right = right and np.allclose(y, EXPECTED, rtol=0, atol=1.8e-06, equal_nan=True)
    print(f"{name:24}", "ok:" if right else "WRONG:", y.dtype, y.shape, *y.ravel()[:6], flush=True)
    return not right
import onnxruntime as ort; options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
y = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, feeds)[0]
wrong = judge('onnxruntime', y)
y = np.asarray(onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0])
sys.exit(judge('onnx-reference', y) or wrong)
