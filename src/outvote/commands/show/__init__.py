"""`outvote show`."""
