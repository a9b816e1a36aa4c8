"""Rules that put calls into a program, or change their arguments."""
