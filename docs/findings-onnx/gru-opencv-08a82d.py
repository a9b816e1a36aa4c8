"""opencv gives (1, 1, 3) instead of (2, 1, 1, 3) in GRU layer 'y0'
Fails or dies while the bug is there, exits 0 when it is gone. Needs onnx, numpy and the runtimes."""
import os, sys, numpy as np, onnx, onnx.reference; from onnx import helper, numpy_helper
EXPECTED = np.zeros((2, 1, 1, 3)).astype("float32")  # by an independent NumPy computation in float64
feeds = {'x0': np.zeros((2, 1, 1)).astype("float32")}
nodes = [helper.make_node('GRU', ['x0', 'w0', 'w1', 'w2', 'w3', 'w4'], ['y0'], hidden_size=3)]
inputs = [helper.make_tensor_value_info('x0', 1, [2, 1, 1])]
constants = [
    numpy_helper.from_array(np.zeros((1, 9, 1)).astype("float32"), 'w0'),
    numpy_helper.from_array(np.zeros((1, 9, 3)).astype("float32"), 'w1'),
    numpy_helper.from_array(np.zeros((1, 18)).astype("float32"), 'w2'),
    numpy_helper.from_array(np.array([2], "int32"), 'w3'),
    numpy_helper.from_array(np.zeros((1, 1, 3)).astype("float32"), 'w4'),
]
graph = helper.make_graph(nodes, 'graph', inputs, [helper.make_tensor_value_info('y0', 1, [2, 1, 1, 3])], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
def judge(name, y):
    right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
    right = right and np.allclose(y, EXPECTED, rtol=0, atol=9.5e-37, equal_nan=True)
    print(f"{name:24}", "ok:" if right else "WRONG:", y.dtype, y.shape, *y.ravel()[:6], flush=True)
    return not right
y = np.asarray(onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0])
wrong = judge('onnx-reference', y)
import cv2; typed = onnx.shape_inference.infer_shapes(model).SerializeToString()
net = cv2.dnn.readNetFromONNX(np.frombuffer(typed, "u1"), engine=cv2.dnn.ENGINE_NEW)
for name, x in feeds.items(): net.setInput(x, name)
y = net.forward([item.name for item in model.graph.output])[0]
sys.exit(judge('opencv', y) or wrong)
