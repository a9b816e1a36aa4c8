"""onnx-reference differs by 0.41 (relative) in LRN layer 'y0'
Fails or dies while the bug is there, exits 0 when it is gone. Needs onnx, numpy and the runtimes."""
import os, sys, numpy as np, onnx, onnx.reference; from onnx import helper, numpy_helper
EXPECTED = np.array([[[[0.59460354]], [[0.59460354]]]], "float32")  # by an independent NumPy computation in float64
feeds = {'x0': np.ones((1, 2, 1, 1)).astype("float32")}
nodes = [helper.make_node('LRN', ['x0'], ['y0'], alpha=1.0, size=1)]
inputs = [helper.make_tensor_value_info('x0', 1, [1, 2, 1, 1])]
graph = helper.make_graph(nodes, 'graph', inputs, [onnx.ValueInfoProto(name='y0')])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8)
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
