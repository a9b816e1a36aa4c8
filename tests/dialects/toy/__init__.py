"""A dialect of its own, small enough to read: ONNX-like operators, computed by NumPy.

Three things are not as in Keras: `Softmax` is that of ONNX before opset 13, which flattens all
axes from `axis` on; `Transpose` moves the batch; and what `Mul` multiplies by has no batch at all.
"""
