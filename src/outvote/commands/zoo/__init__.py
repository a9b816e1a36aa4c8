"""`outvote zoo`."""
