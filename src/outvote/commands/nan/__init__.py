"""`outvote nan`."""
