"""`outvote localize`."""
