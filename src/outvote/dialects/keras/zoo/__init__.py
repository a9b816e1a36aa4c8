"""Seed models by name: those of LEMON and AUDEE, and two of ours. Imports no framework."""
