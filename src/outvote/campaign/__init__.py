"""`outvote fuzz`: seeds, targets, a strategy and a budget; what it finds goes into a store."""
