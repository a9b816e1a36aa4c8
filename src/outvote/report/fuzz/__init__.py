"""The pages of `fuzz`."""
