"""What PyTorch makes of a graph before it runs it: a file for each mode."""
