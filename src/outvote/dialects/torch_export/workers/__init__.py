"""What runs inside the processes of PyTorch's targets."""
