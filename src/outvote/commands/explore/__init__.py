"""`outvote explore`."""
