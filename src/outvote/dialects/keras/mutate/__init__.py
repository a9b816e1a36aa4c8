"""What mutants are made of: kinds of layers, their parameters and values."""
