"""Targets that grow slower or larger than they should."""
