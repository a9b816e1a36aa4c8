"""`outvote serve`."""
