"""Words of both sides: the driver and the worker."""
