"""opencv fails in GlobalMaxPool layer 'y0': error: OpenCV(5.0.0) /io/opencv/modules/dnn/src/layers/pooling_layer.cpp:1214: error: (-2:Unspecified error) in function 'virtual bool cv::dnn::PoolingLayerImp…
Fails or dies while the bug is there, exits 0 when it is gone. Needs onnx, numpy and the runtimes."""
import os, sys, numpy as np, onnx, onnx.reference; from onnx import helper, numpy_helper
EXPECTED = np.array([[[[[0.0]]]]], "float32")  # by an independent NumPy computation in float64
feeds = {'x0': np.array([[[[[0.0]]]]], "float32")}
nodes = [helper.make_node('GlobalMaxPool', ['x0'], ['y0'])]
inputs = [helper.make_tensor_value_info('x0', 1, [1, 1, 1, 1, 1])]
graph = helper.make_graph(nodes, 'graph', inputs, [helper.make_tensor_value_info('y0', 1, [1, 1, 1, 1, 1])])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21)], ir_version=8)
def judge(name, y):
    right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
    right = right and np.allclose(y, EXPECTED, rtol=0, atol=9.5e-37, equal_nan=True)
    print(f"{name:24}", "ok:" if right else "WRONG:", y.dtype, y.shape, *y.ravel()[:6], flush=True)
    return not right
import onnxruntime as ort; options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
y = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, feeds)[0]
wrong = judge('onnxruntime', y)
import cv2; typed = onnx.shape_inference.infer_shapes(model).SerializeToString()
net = cv2.dnn.readNetFromONNX(np.frombuffer(typed, "u1"), engine=cv2.dnn.ENGINE_NEW)
for name, x in feeds.items(): net.setInput(x, name)
y = net.forward([item.name for item in model.graph.output])[0]
sys.exit(judge('opencv', y) or wrong)
