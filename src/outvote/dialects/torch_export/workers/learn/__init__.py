"""Training of programs: what a worker answers about gradients, updates and steps."""
