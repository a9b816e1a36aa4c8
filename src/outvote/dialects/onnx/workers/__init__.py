"""What runs inside the processes of ONNX targets: a file per runtime."""
