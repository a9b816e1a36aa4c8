"""PyTorch programs as `torch.export` writes them: everything that knows an operator of ATen."""
