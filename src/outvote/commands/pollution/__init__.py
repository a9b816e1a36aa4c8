"""`outvote pollution`."""
