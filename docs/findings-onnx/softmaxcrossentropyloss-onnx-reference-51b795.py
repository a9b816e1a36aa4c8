"""onnx-reference differs in infinities in SoftmaxCrossEntropyLoss layer 'y0'
Fails or dies while the bug is there, exits 0 when it is gone. Needs onnx, numpy and the runtimes."""
import os, sys, numpy as np, onnx, onnx.reference; from onnx import helper, numpy_helper
EXPECTED = np.array(154.60916137695312, "float32")  # by onnxruntime, openvino:onnx, opencv: what they agree on
feeds = {'x0': np.array([[[[-2.0, -893.0, 4514.0], [-7.0, -0.0, 48.0], [25.0, 0.0, -0.0], [-0.0, 0.0, -2.0]], [[-0.0, -0.0, 0.0], [-52.0, -0.0, -12.0], [-6.0, 13.0, 185.0], [11033.0, 1706.0, -0.0]], [[-0.0, -0.0, 90155.0], [-0.0, -0.0, -0.0], [-0.0, -0.0, 115.0], [487915.0, 1.0, 0.0]]]], "float32")}
nodes = [helper.make_node('SoftmaxCrossEntropyLoss', ['x0', 'w0'], ['y0', 'y0_1'])]
inputs = [helper.make_tensor_value_info('x0', 1, [1, 3, 4, 3])]
constants = [numpy_helper.from_array(np.array([[[1, 1, 2], [1, 2, 0], [2, 1, 2], [2, 2, 2]]], "int64"), 'w0')]
graph = helper.make_graph(nodes, 'graph', inputs, [onnx.ValueInfoProto(name='y0')], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
def judge(name, y):
    right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
    right = right and np.allclose(y, EXPECTED, rtol=0, atol=0.00015, equal_nan=True)
    print(f"{name:24}", "ok:" if right else "WRONG:", y.dtype, y.shape, *y.ravel()[:6], flush=True)
    return not right
import onnxruntime as ort; options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
y = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, feeds)[0]
wrong = judge('onnxruntime', y)
y = np.asarray(onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0])
sys.exit(judge('onnx-reference', y) or wrong)
