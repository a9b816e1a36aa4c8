"""`outvote targets`."""
