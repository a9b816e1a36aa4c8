"""`outvote check`."""
