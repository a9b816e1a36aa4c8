"""`outvote doctor`: what is installed, what each target can do here, and what is missing."""
