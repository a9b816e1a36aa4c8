"""opencv gives float32 instead of int64 in Pow layer 'y0'
Fails or dies while the bug is there, exits 0 when it is gone. Needs onnx, numpy and the runtimes."""
import os, sys, numpy as np, onnx, onnx.reference; from onnx import helper, numpy_helper
EXPECTED = np.array([[1]], "int64")  # by onnxruntime, openvino:onnx, onnx-reference: what they agree on
feeds = {'x0': np.array([[1]], "int64")}
nodes = [helper.make_node('Pow', ['x0', 'w0'], ['y0'])]
inputs = [helper.make_tensor_value_info('x0', 7, [1, 1])]
constants = [numpy_helper.from_array(np.array(0.0, "float32"), 'w0')]
graph = helper.make_graph(nodes, 'graph', inputs, [helper.make_tensor_value_info('y0', 7, [1, 1])], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
def judge(name, y):
    right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
    right = right and np.allclose(y, EXPECTED, rtol=0, atol=9.5e-07, equal_nan=True)
    print(f"{name:24}", "ok:" if right else "WRONG:", y.dtype, y.shape, *y.ravel()[:6], flush=True)
    return not right
y = np.asarray(onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0])
wrong = judge('onnx-reference', y)
import cv2; typed = onnx.shape_inference.infer_shapes(model).SerializeToString()
net = cv2.dnn.readNetFromONNX(np.frombuffer(typed, "u1"), engine=cv2.dnn.ENGINE_NEW)
for name, x in feeds.items(): net.setInput(x, name)
y = net.forward([item.name for item in model.graph.output])[0]
sys.exit(judge('opencv', y) or wrong)
