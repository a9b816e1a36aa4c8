"""What the driver and the workers of this wing both know."""
