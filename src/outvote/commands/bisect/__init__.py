"""`outvote bisect`."""
