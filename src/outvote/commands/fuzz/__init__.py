"""`outvote fuzz`."""
