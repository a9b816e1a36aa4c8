"""What the workers have in common."""
