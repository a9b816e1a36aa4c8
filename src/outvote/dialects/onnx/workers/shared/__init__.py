"""What all ONNX workers share: reading files, building graphs, running them node by node."""
