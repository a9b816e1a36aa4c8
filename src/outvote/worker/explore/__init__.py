"""The search of DeepXplore, inside a worker."""
