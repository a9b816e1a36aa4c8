"""Modules of the zoo, and how they become programs."""
