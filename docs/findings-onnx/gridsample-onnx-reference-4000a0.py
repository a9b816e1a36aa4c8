"""onnx-reference fails in GridSample layer 'y0': RuntimeError: GridSample interpolation only supports nearest, linear, and cubic modes.
Fails or dies while the bug is there, exits 0 when it is gone. Needs onnx, numpy and the runtimes."""
import os, sys, numpy as np, onnx, onnx.reference; from onnx import helper, numpy_helper
EXPECTED = np.zeros((2, 1, 1, 1)).astype("float32")  # by onnxruntime, openvino:onnx, opencv: what they agree on
feeds = {'x0': np.zeros((2, 1, 1, 1)).astype("float32")}
nodes = [helper.make_node('GridSample', ['x0', 'w0'], ['y0'], mode='bilinear')]
inputs = [helper.make_tensor_value_info('x0', 1, [2, 1, 1, 1])]
constants = [numpy_helper.from_array(np.zeros((2, 1, 1, 2)).astype("float32"), 'w0')]
graph = helper.make_graph(nodes, 'graph', inputs, [onnx.ValueInfoProto(name='y0')], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
def judge(name, y):
    right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
    right = right and np.allclose(y, EXPECTED, rtol=0, atol=9.5e-37, equal_nan=True)
    print(f"{name:24}", "ok:" if right else "WRONG:", y.dtype, y.shape, *y.ravel()[:6], flush=True)
    return not right
import onnxruntime as ort; options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
y = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, feeds)[0]
wrong = judge('onnxruntime', y)
y = np.asarray(onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0])
sys.exit(judge('onnx-reference', y) or wrong)
