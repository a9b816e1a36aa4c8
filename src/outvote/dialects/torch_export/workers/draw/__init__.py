"""New programs, of PyTorch's own samples of its operators."""
