"""Which layer is to blame: CRADLE's introduction rate, and each layer alone."""
