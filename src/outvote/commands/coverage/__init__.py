"""`outvote coverage`."""
