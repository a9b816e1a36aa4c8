"""ONNX: everything that knows one of its operators by name."""
