"""`outvote report`."""
